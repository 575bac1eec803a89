import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL, Run
from tests.cli.given_jobs import Given, fill
from windlass.cli import job_follow, job_list
from windlass.cli.job_follow import follow
from windlass.client import look_back
from windlass.core.errors import StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.job import Job, Note, Progress
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import UNKNOWN


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    monkeypatch.setenv("WINDLASS_URL", URL)
    return fill(URL)


@pytest.fixture(params=[80, 200])
def wide(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal with so many columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(request.param))
    width: int = request.param
    return width


@pytest.mark.parametrize("words", [[], ["list"]])
def test_jobs_are_listed_the_newest_first_one_on_a_line(run: Run, given: Given, words: list[str]) -> None:
    done = run("jobs", *words)

    head, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.split() == ["ID", "QUEUE", "KIND", "STATE", "ATTEMPT", "WHEN", "CREATED", "NOTE"]
    ids = [line.split()[0] for line in lines]
    assert ids == [given.later, given.pending, given.running, given.dead, given.succeeded]
    assert "ValueError: kaputt \\x1b[31m 日本語" in lines[3]
    assert "30/100 (30%) rows" in lines[2]


@pytest.mark.parametrize(
    "words,found",
    [
        (["--state", "dead"], ["dead"]),
        (["--queue", "mail", "--state", "pending"], ["pending"]),
        (["--kind", "report"], ["succeeded"]),
        (["--tenant", "acme"], ["running"]),
        (["--error", "kaputt"], ["dead"]),
        (["--error-type", "ValueError"], ["dead"]),
        (["--error-type", "Value"], []),
        (["--key", "nobody"], []),
        (["--parent", "00000000-0000-7000-8000-000000000000"], []),
        (["--payload-text", "hush"], ["dead"]),
        (["--since", "1h", "--kind", "send"], ["running", "dead"]),
        (["--until", "1h"], []),
        (["--since", "2020-01-01T00:00:00Z", "--text", "acme"], ["running"]),
    ],
)
def test_a_list_is_of_what_was_chosen(run: Run, given: Given, words: list[str], found: list[str]) -> None:
    told = run("jobs", *words, "--json").document

    assert [job["id"] for job in told["jobs"]] == [getattr(given, name) for name in found]
    assert told["next"] is None


def test_a_list_that_was_cut_says_how_to_go_on(run: Run, given: Given) -> None:
    first = run("jobs", "--limit", "2")
    number = first.err.rsplit(maxsplit=1)[1]
    rest = run("jobs", "--limit", "2", "--before", number, "--json").document

    assert first.err == f"there may be more: go on with --before {number}\n"
    assert [job["id"] for job in rest["jobs"]] == [given.running, given.dead]
    by_id = run("jobs", "--before", given.dead, "--json").document
    assert [job["id"] for job in by_id["jobs"]] == [given.succeeded]


def test_dead_jobs_are_listed_the_last_to_die_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = _dead_in_turn()
    latest = [ids[number] for number in (1, 3, 0, 4, 2)]
    monkeypatch.setattr(job_list, "PAGE", 2)

    def shown(*words: str) -> list[str]:
        return [job["id"] for job in run("dead", *words, "--json", "--url", URL).document["jobs"]]

    first = run("dead", "--limit", "3", "--url", URL)
    cursor = first.err.rsplit(maxsplit=1)[1]

    assert shown() == latest
    assert first.err == f"there may be more: go on with --before {cursor}\n"
    assert run("dead", "--limit", "3", "--json", "--url", URL).document["next"] == cursor
    assert shown("--before", cursor) == latest[3:]
    assert shown("--before", latest[3]) == latest[4:]
    assert run("dead", "--limit", "5", "--url", URL).err == ""
    assert shown("--queue", "mail") == [each for each in latest if each in ids[::2]]
    # with more to match by, those that are found are in that order
    assert shown("--kind", "send") == latest
    with windlass.connect_sync(URL) as client:
        client.delete(latest[2])
    assert shown("--before", cursor) == latest[3:]


def _dead_in_turn() -> list[str]:
    with windlass.connect_sync(URL) as client:
        jobs = [windlass.NewJob(("mail", "sms")[number % 2], kind="send") for number in range(5)]
        ids: list[str] = [done.id for done in client.enqueue_many(jobs)]
        claims = [*client.claim_many("mail", limit=5), *client.claim_many("sms", limit=5)]
        for number in (2, 4, 0, 3, 1):
            [claim] = [claim for claim in claims if claim.job.id == ids[number]]
            client.dead_letter(claim, "kaputt")
    return ids


def test_a_list_of_dead_jobs_that_was_cut_by_the_time_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = _dead_in_turn()
    monkeypatch.setattr(job_list, "PAGE", 2)
    monkeypatch.setattr(job_list, "ENOUGH", -1.0)

    cut = run("dead", "--json", "--url", URL).document

    assert [job["id"] for job in cut["jobs"]] == [ids[1], ids[3]]
    [*_, third] = run("dead", "--before", cut["next"], "--json", "--url", URL).document["jobs"]
    assert third["id"] == ids[4]
    assert run("dead", "--url", URL).err == (
        f"the time was over before all was looked at: go on with --before {cut['next']}\n"
    )


def test_a_list_of_dead_jobs_begins_at_a_dead_job(run: Run, given: Given) -> None:
    for cursor, code in ((given.pending, 1), ("4711", 2), ("1-x", 2), (f"{2**63}-1", 2), (UNKNOWN, 4)):
        assert run("dead", "--before", cursor).code == code, cursor


@pytest.mark.usefixtures("given")
def test_a_list_ends_when_its_time_is_over_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_list, "ENOUGH", -1.0)
    monkeypatch.setattr(look_back, "LOOKED_AT", 1)

    done = run("jobs", "--text", "acme")

    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("the time was over before all was looked at: go on with --before ")


@pytest.mark.usefixtures("given")
def test_a_list_fits_the_terminal(run: Run, wide: int) -> None:
    for words in (["jobs"], ["dead"], ["dead", "--group"], ["queues"], ["servers"], ["stats"], ["audit"]):
        done = run(*words)

        assert done.code == 0
        assert "\x1b[31m 日" not in done.out
        assert all(len(_bare(line)) <= wide for line in done.out.splitlines())
    assert "\x1b[1m" in run("jobs").out


@pytest.mark.usefixtures("given", "wide")
def test_no_colour_is_heeded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[3" not in run("jobs").out + run("stats").out


def _bare(line: str) -> str:
    return "".join(part.partition("m")[2] if number else part for number, part in enumerate(line.split("\x1b[")))


def test_everything_of_a_job_is_shown_but_its_secrets(run: Run, given: Given) -> None:
    shown = run("jobs", "show", given.dead)
    whole = run("jobs", "show", given.dead, "--traceback")
    told = run("jobs", "show", given.dead, "--json").document

    assert '"api_token": "***"' in shown.out
    assert "authorization=***" in shown.out
    assert "last error" in shown.out
    assert shown.err == "1 traceback kept: see with --traceback\n"
    assert "ValueError: kaputt" in whole.out.split("delivery 1:")[1]
    assert told["payload"] == {"to": "me", "api_token": "***"}
    assert told["history"][0]["failure"]["type"] == "ValueError"
    assert "hush" not in shown.out + str(told)
    assert "\x1b" not in shown.out + whole.out


def test_an_operators_retry_and_the_module_of_an_error_are_shown(run: Run, given: Given) -> None:
    run("jobs", "retry", given.dead, "--yes")

    shown, told = run("jobs", "show", given.dead).out, run("jobs", "show", given.dead, "--json").document
    why = run("why", given.dead).out

    [delivery] = told["history"]
    assert delivery["failure"]["module"] == "builtins"
    assert delivery["retried_at"] is not None
    assert "retried at" in " ".join(shown.split())
    assert "an operator retried it" in why


def test_progress_log_and_result_are_shown(run: Run, given: Given) -> None:
    running, done = run("jobs", "show", given.running).out, run("jobs", "show", given.succeeded).out

    assert "[#######.................] 30/100 (30%) rows" in running
    assert "warning wiped \\x1b[2J" in running
    assert '{"rows": 3, "password": "***"}' in done


def test_bytes_that_are_no_text_are_shown_by_their_numbers(run: Run, given: Given) -> None:
    told = run("jobs", "show", given.pending, "--json").document

    assert "2 bytes: ff 00" in run("jobs", "show", given.pending).out
    assert (told["payload"], told["payload_base64"]) == (None, "/wA=")


@pytest.mark.parametrize(
    "payload,shown",
    [
        (b'{"password": "hush", "n": 1}', {"password": "***", "n": 1}),
        (b' [{"api_key": "hush"}]', [{"api_key": "***"}]),
        (b"42", "42"),
        (b"", ""),
        ("text", "text"),
        (None, None),
    ],
)
def test_bytes_that_are_json_are_read_for_what_is_secret_in_them(run: Run, payload: object, shown: object) -> None:
    with windlass.connect_sync(URL) as client:
        job_id = client.enqueue("q", payload).id

    told = run("jobs", "show", job_id, "--json", "--url", URL)

    assert told.document["payload"] == shown
    assert "hush" not in told.out


SHOP = f"""
from dataclasses import dataclass
from typing import Annotated

import windlass
from windlass import Secret

app = windlass.App({URL!r})


@dataclass
class Card:
    number: Annotated[str, Secret]
    holder: str


@app.job
def pay(pin: Annotated[str, Secret], cards: list[Card]) -> None: ...
"""


def test_what_a_handler_marks_as_secret_is_hidden_also_without_its_app(run: Run) -> None:
    Path("shop.py").write_text(SHOP)
    args = '{"pin": "canary", "cards": [{"number": "canary", "holder": "Ada"}]}'
    job_id = run("enqueue", "pay", "--args", args, "--app", "shop:app").out.strip()
    put = run("schedules", "put", "nightly", "pay", "--every", "1d", "--args", args, "--app", "shop:app")
    shown = '{"pin": "***", "cards": [{"number": "***", "holder": "Ada"}]}'

    looks = [
        run(*words, *form, "--url", URL)
        for words in (("jobs", "show", job_id), ("jobs", "list"), ("why", job_id), ("schedules", "show", "nightly"))
        for form in ((), ("--json",))
    ]

    assert put.code == 0
    assert [look.code for look in looks] == [0] * 8
    assert [n for n, look in enumerate(looks) if "canary" in look.out + look.err] == []
    assert shown in looks[0].out
    assert "windlass-secret=pin,cards[].number" in looks[0].out
    assert looks[1].document["payload"] == json.loads(shown)
    assert looks[1].document["headers"] == {"windlass-secret": "pin,cards[].number"}
    assert shown in looks[6].out


def test_what_the_app_marks_as_secret_is_hidden_of_jobs_that_others_made(run: Run) -> None:
    Path("shop.py").write_text(SHOP)
    with windlass.connect_sync(URL) as client:
        payload = {"pin": "canary", "cards": [{"number": "canary"}, "odd"]}
        job_id = client.enqueue("default", payload, kind="pay", headers={"windlass-secret": "..nonsense[,"}).id

    told = run("jobs", "show", job_id, "--app", "shop:app", "--json")

    assert told.document["payload"] == {"pin": "***", "cards": [{"number": "***"}, "odd"]}
    assert "canary" in run("jobs", "show", job_id, "--url", URL).out


def test_the_beginning_of_an_id_is_enough(run: Run, given: Given) -> None:
    assert given.dead in run("jobs", "show", given.dead[:23]).out
    assert run("jobs", "show", given.dead[:23][:8]).code in (0, 2)
    assert run("jobs", "show", "00000000-0000-7000-8000-000000000000").code == 4
    assert run("jobs", "show", "nonsense").code == 2


def test_following_shows_what_comes_and_ends_with_the_job(run: Run, given: Given) -> None:
    def work() -> None:
        with windlass.connect_sync(URL) as client:
            client.rescue(force=True)
            while (claim := client.claim("mail")) is not None:
                client.ack(claim)

    thread = threading.Thread(target=work)
    thread.start()
    done = run("jobs", "show", given.running, "--follow")
    thread.join()

    assert done.code == 0
    assert "line one" in done.out


def test_following_tells_by_its_code_how_the_job_ended(run: Run, given: Given) -> None:
    assert run("jobs", "show", given.succeeded, "--follow").code == 0
    assert run("jobs", "show", given.dead, "--follow").code == 1


def test_wrong_words_are_refused_before_anything_is_opened(run: Run) -> None:
    for words, said in (
        (["--state", "done"], "--state"),
        (["--queue", "a b"], "has the character ' '"),
        (["--since", "yesterday"], "it is a time such as"),
        (["--limit", "0"], "--limit"),
        (["--parent", "0199"], "a job id is a UUID"),
        (["--key", "a b"], "has the character ' '"),
        (["--error-type", ""], "it is empty"),
        (["--payload-text", " "], "it is empty"),
    ):
        done = run("jobs", *words, "--url", URL)

        assert (done.code, done.out) == (2, "")
        assert said in done.err


@pytest.mark.usefixtures("given")
def test_a_place_to_go_on_from_that_is_none_is_refused(run: Run) -> None:
    assert run("jobs", "--before", "x").code == 2
    assert run("jobs", "--before", "00000000-0000-7000-8000-000000000000").code == 4


async def test_lines_progress_and_attempts_are_told_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    # its clock stands still: whoever waited for the next look would wait for ever
    async with asyncio.timeout(20), windlass.connect("memory://", clock=FakeClock()) as client:
        job_id = (await client.enqueue("mail")).id
        claim = await client.claim("mail")
        job = await client.get(job_id)
        assert claim is not None
        assert job is not None
        await client.store.note([Note(job_id, claim.token, Progress(1, 4), [("info", "half \x1b[2J way")])])
        await client.ack(claim)

        ended = await follow(client, job, quiet=False)

    assert ended is not None
    assert ended.state == "succeeded"
    out = capsys.readouterr().out
    assert "info    half \\x1b[2J way\n" in out
    assert "progress: 1/4 (25%)\n" in out


async def test_a_store_that_goes_away_is_told_of_once_and_asked_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_follow, "EVERY", 0)
    async with asyncio.timeout(20), windlass.connect("memory://") as client:
        job = await client.get((await client.enqueue("mail")).id)
        assert job is not None
        await client.cancel(job.id)
        look, away = client.store.get, [True, True]

        async def get(ids: Sequence[JobId]) -> list[Job | None]:
            if away:
                away.pop()
                raise StoreUnavailable("away", retryable=True)
            return await look(ids)

        monkeypatch.setattr(client.store, "get", get)

        ended = await follow(client, job, quiet=False)

    assert ended is not None
    assert ended.state == "cancelled"
    assert capsys.readouterr().err == "warning: away\n"
