import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass import Job, State

ID = "018f0000-0000-7000-8000-000000000001"


def only_job() -> Job:
    with windlass.connect_sync(URL) as client:
        [job] = client.jobs()
        return job


def answer_one(ending: str) -> threading.Thread:
    """Wait for a job in another thread, and end it as somebody else's process would."""

    def work() -> None:
        with windlass.connect_sync(URL) as client:
            claim = client.claim("default", wait=20)
            assert claim is not None
            if ending == "ack":
                client.ack(claim, {"sum": 3})
            elif ending == "dead":
                client.dead_letter(claim, "no\x1b[31m way")
            else:
                client.cancel_claim(claim, "not wanted")

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.usefixtures("app_file")
def test_a_handler_is_enqueued_by_its_kind_and_arguments(run: Run) -> None:
    done = run("enqueue", "send_welcome", "user_id=42", "locale=sv", "--app", "tasks:app")

    job = only_job()
    assert (done.code, done.out, done.err) == (0, f"{job.id}\n", "")
    assert (job.kind, job.queue, job.max_attempts) == ("send_welcome", "email", 5)
    assert job.payload == b'{"user_id":42,"locale":"sv"}'


@pytest.mark.usefixtures("app_file")
def test_an_alias_makes_a_job_of_the_kind_that_it_stands_for(run: Run) -> None:
    assert run("enqueue", "greet", "user_id=1", "--app", "tasks").code == 0

    assert only_job().kind == "send_welcome"


@pytest.mark.usefixtures("app_file")
@pytest.mark.parametrize(
    "values,payload",
    [
        (["place=attic"], b'{"place":"attic"}'),
        (["place=42"], b'{"place":"42"}'),
        (["place=null"], b'{"place":"null"}'),
        (['place="42"'], b'{"place":"42"}'),
        (["place=[1]"], b'{"place":"[1]"}'),
        (["place=a=b"], b'{"place":"a=b"}'),
        (["place="], b'{"place":""}'),
        (["place=x", "floor=null"], b'{"place":"x","floor":null}'),
        (["place=x", "floor=3"], b'{"place":"x","floor":"3"}'),
    ],
)
def test_a_text_is_a_text_where_a_text_is_wanted(run: Run, values: list[str], payload: bytes) -> None:
    done = run("enqueue", "move", *values, "--app", "tasks:app")

    assert done.code == 0, done.err
    assert only_job().payload == payload


@pytest.mark.usefixtures("app_file")
@pytest.mark.parametrize(
    "value,payload",
    [("1", b"1"), ("1.5", b"1.5"), ("true", b"true"), ("null", b"null"), ('{"a": [1]}', b'{"a":[1]}'), ("x", b'"x"')],
)
def test_a_value_is_json_where_it_is_some_and_else_text(run: Run, value: str, payload: bytes) -> None:
    assert run("enqueue", "take", f"it={value}", "--app", "tasks:app").code == 0

    assert only_job().payload == b'{"it":' + payload + b"}"


@pytest.mark.usefixtures("app_file")
@pytest.mark.parametrize("given", ["{}", "-", "@args.json"])
def test_arguments_may_come_as_one_object_from_anywhere(run: Run, given: str) -> None:
    written = '{"user_id": 7, "locale": "de"}'
    Path("args.json").write_text(written)

    done = run(
        "enqueue",
        "send_welcome",
        "--app",
        "tasks:app",
        "--args",
        written if given == "{}" else given,
        stdin=written.encode(),
    )

    assert done.code == 0, done.err
    assert only_job().payload == b'{"user_id":7,"locale":"de"}'


@pytest.mark.usefixtures("app_file")
@pytest.mark.parametrize(
    "given,said",
    [
        (["send_welcome"], "missing a required argument: 'user_id'; it takes: send_welcome user_id=… [locale=…]"),
        (["move"], "it takes: move place=… [floor=…]"),
        (["send_welcome", "user_id=x"], "send_welcome(): user_id: Expected int, got str"),
        (
            ["send_welcome", "user_id=1", "nope=1"],
            "has no argument 'nope'; it takes: send_welcome user_id=… [locale=…]",
        ),
        (["send_welcome", "user_di=1"], "send_welcome() has no argument 'user_di': did you mean 'user_id'?"),
        (["send_welcome", "user_id=1", "user_id=2"], "the argument 'user_id' is given twice"),
        (["send_welcome", "user_id"], "an argument is written NAME=VALUE, not 'user_id'"),
        (["move", "attic"], "an argument is written NAME=VALUE, not 'attic'; it takes: move place=… [floor=…]"),
        (["zzz"], "no handler for job kind 'zzz': import its module where the app is made; the kinds here are greet,"),
        (["send_welcome", "user_id=1", "--at", "0001-01-01T00:00+14:00"], "outside of the years 1 to 9999"),
        (["send_welcome", "=1"], "an argument is written NAME=VALUE, not '=1'"),
        (["send_welcom"], "did you mean 'send_welcome'?"),
        (["send_welcome", "--args", "{"], "--args is no JSON"),
        (["send_welcome", "--args", "[1]"], "--args must be one JSON object"),
        (["send_welcome", "--args", "@nowhere.json"], "nowhere.json cannot be read: No such file"),
        (["send_welcome", "--args", "{}", "user_id=1"], "--args is all there is of arguments"),
        (["send_welcome", "--payload", "x"], "--payload is for raw jobs"),
        (["send_welcome", "--kind", "x"], "--kind is for raw jobs"),
        (["send_welcome", "user_id=1", "--delay", "soon"], "must be a number of seconds"),
        (["send_welcome", "user_id=1", "--delay=-1"], "must not be negative"),
        (["send_welcome", "user_id=1", "--at", "noon"], "it is a time such as 2026-01-31T09:00:00+01:00"),
        (["send_welcome", "user_id=1", "--at", "2026-01-31T09:00"], "write 2026-01-31T09:00:00Z for UTC"),
        (["send_welcome", "user_id=1", "--at", "2026-01-31T09:00Z", "--delay", "1"], "--delay or --at, not both"),
        (["send_welcome", "user_id=1", "--priority", "urgent"], "none of high, normal, low"),
        (["send_welcome", "user_id=1", "--priority=-1"], "priority must be from 0"),
        (["send_welcome", "user_id=1", "--max-attempts", "0"], "max_attempts must be from 1"),
        (["send_welcome", "user_id=1", "--queue", "a b"], "has the character ' '"),
        (["send_welcome", "user_id=1", "--header", "x"], "--header is written NAME=VALUE"),
        (["send_welcome", "user_id=1", "--id", "x"], "id"),
        (["send_welcome", "user_id=1", "--unique", ""], "is empty"),
        (["send_welcome", "user_id=1", "--tenant", "a\nb"], "tenant"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(run: Run, given: list[str], said: str) -> None:
    done = run("enqueue", *given, "--app", "tasks:app")

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert not Path("jobs.db").exists()


def test_a_raw_job_is_made_without_any_app(run: Run) -> None:
    done = run("enqueue", "--queue", "email", "--payload", "hejå", "--url", URL)

    job = only_job()
    assert (done.out, job.queue, job.kind) == (f"{job.id}\n", "email", None)
    assert (job.payload, job.codec) == ("hejå".encode(), "raw")


@pytest.mark.parametrize("given", ["-", "@body.bin"])
def test_a_payload_is_taken_byte_for_byte(run: Run, given: str) -> None:
    body = bytes(range(256))
    Path("body.bin").write_bytes(body)

    assert run("enqueue", "--queue", "q", "--payload", given, "--url", URL, stdin=body).code == 0

    assert only_job().payload == body


def test_a_kind_without_an_app_takes_arguments_unchecked(run: Run) -> None:
    assert run("enqueue", "--queue", "q", "--kind", "anything", "--args", '{"a": 1}', "--url", URL).code == 0

    job = only_job()
    assert (job.kind, job.payload, job.codec) == ("anything", b'{"a":1}', "json")


@pytest.mark.parametrize(
    "given,said",
    [
        ([], "say what to enqueue"),
        (["--payload", "x"], "a raw job needs --queue"),
        (["--queue", "q"], "say what to enqueue"),
        (["--queue", "q", "--args", "{}"], "--args are for a kind"),
        (["--queue", "q", "--kind", "k", "--args", "{}", "--payload", "x"], "--args is all there is of arguments"),
        (["send_welcome"], "no app is named"),
        (["--queue", "q", "--payload", "x", "--nope"], "--nope"),
    ],
)
def test_a_job_that_is_not_described_is_wrong_usage(run: Run, given: list[str], said: str) -> None:
    done = run("enqueue", *given, "--url", URL)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not Path("jobs.db").exists()


def test_every_option_reaches_the_job(run: Run) -> None:
    options = {
        "--priority": "high",
        "--max-attempts": "7",
        "--tenant": "acme",
        "--unique": "once",
        "--id": ID,
        "--at": "2030-01-01T10:00:00+02:00",
    }

    flags = [part for pair in options.items() for part in pair]
    done = run("enqueue", "--queue", "q", "--payload", "", *flags, "--header", "a=1", "--header", "b=x=y", "--url", URL)

    job = only_job()
    assert done.out == f"{ID}\n"
    assert (job.priority, job.max_attempts, job.tenant, job.unique_key) == (100, 7, "acme", "once")
    assert job.headers == {"a": "1", "b": "x=y"}
    assert (job.state, job.run_at) == (State.SCHEDULED, datetime(2030, 1, 1, 8, tzinfo=UTC))


def test_a_delay_is_written_as_in_the_settings(run: Run) -> None:
    assert run("enqueue", "--queue", "q", "--payload", "x", "--delay", "2h", "--url", URL).code == 0

    job = only_job()
    assert abs(job.run_at - job.created_at - timedelta(hours=2)) < timedelta(seconds=1)


def test_the_same_id_is_one_job_and_the_second_call_says_so(run: Run) -> None:
    once = run("enqueue", "--queue", "q", "--payload", "x", "--id", ID, "--url", URL)
    again = run("enqueue", "--queue", "q", "--payload", "x", "--id", ID, "--url", URL)

    assert (once.out, once.err) == (f"{ID}\n", "")
    assert (again.out, again.code) == (f"{ID}\n", 0)
    assert "was there already" in again.err
    assert run("enqueue", "--queue", "q", "--payload", "x", "--id", ID, "--json", "--url", URL).document == {
        "id": ID,
        "created": False,
        "queue": "q",
        "kind": None,
    }


def test_a_result_that_is_waited_for_is_printed(run: Run) -> None:
    other = answer_one("ack")

    done = run("enqueue", "--queue", "default", "--payload", "x", "--wait", "30s", "--url", URL)

    other.join()
    first, _, rest = done.out.partition("\n")
    assert (done.code, first, rest) == (0, only_job().id, '{\n  "sum": 3\n}\n')


@pytest.mark.parametrize(
    "ending,state,error", [("dead", "dead", "no\x1b[31m way"), ("cancel", "cancelled", "not wanted")]
)
def test_a_job_that_does_not_succeed_ends_the_wait_with_one(run: Run, ending: str, state: str, error: str) -> None:
    other = answer_one(ending)

    done = run("enqueue", "--queue", "default", "--payload", "x", "--wait", "30", "--json", "--url", URL)

    other.join()
    assert done.code == 1
    assert (done.document["state"], done.document["error"], done.document["result"]) == (state, error, None)
    assert f"is {state}" in done.err
    assert "\x1b" not in done.out + done.err


def test_a_wait_that_is_over_ends_with_one_and_leaves_the_job(run: Run) -> None:
    done = run("enqueue", "--queue", "default", "--payload", "x", "--wait", "50ms", "--url", URL)

    assert done.code == 1
    assert done.out == f"{only_job().id}\n"
    assert "had not ended after 0.05 s: no server is alive, start `windlass worker`" in done.err
    assert only_job().state is State.PENDING


def test_a_store_in_memory_is_refused(run: Run) -> None:
    done = run("enqueue", "--queue", "q", "--payload", "x", "--url", "memory://")

    assert done.code == 2
    assert "a store in memory lives with its process" in done.err
