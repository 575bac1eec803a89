import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass import JobId

FAR = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def job_id() -> JobId:
    with windlass.connect_sync(URL) as client:
        return client.enqueue("email", kind="send").id


def test_the_reasons_are_told_in_order_with_what_to_do(run: Run, job_id: JobId) -> None:
    with windlass.connect_sync(URL) as client:
        client.pause("email")

    done = run("why", job_id, "--url", URL)

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"job {job_id}: pending, send in email",
        "1.   queue 'email' is paused: no job of it is claimed",
        "     -> to let it go on: windlass queues resume email",
        "2.   no server is live that works any queue",
        "     -> start one: windlass worker module:app",
    ]


def test_programs_get_names_and_facts(run: Run, job_id: JobId) -> None:
    told = run("why", job_id, "--url", URL, "--json").document

    assert (told["id"], told["found"], told["state"], told["queue"]) == (job_id, True, "pending", "email")
    assert [reason["name"] for reason in told["reasons"]] == ["no_server"]
    assert told["reasons"][0]["facts"] == {"servers": 0, "ended_lately": 0}


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(run: Run, job_id: JobId) -> None:
    with windlass.connect_sync(URL) as client:
        for end in "12":
            client.enqueue("email", id=f"ffffffff-0000-4000-8000-00000000000{end}")

    assert run("why", job_id[:18], "--url", URL).code == 0
    assert run("why", job_id[:20].replace("-", "").upper(), "--url", URL).code == 0
    several = run("why", "ffffffff", "--url", URL)
    assert (several.code, "the beginning of several ids" in several.err) == (2, True)
    nothing = run("why", "eeeeeeee-00", "--url", URL)
    assert nothing.code == 4
    assert nothing.err.startswith("error: no job that begins with eeeeeeee-00 here")


def test_a_job_is_found_by_its_beginning_wherever_it_stands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.client.job_ids.NEAR", 1)
    with windlass.connect_sync(URL) as client:
        for begin in "fedcba":
            client.enqueue("email", id=f"{begin * 8}-0000-4000-8000-000000000000")

    assert [run("why", begin * 8, "--url", URL).code for begin in "fedcba"] == [0] * 6


@pytest.mark.parametrize("text", ["", "email", "ffffff", "zzzzzzzzz", "f" * 33, "\x1b[2J", "é" * 40])
def test_what_is_no_id_is_refused(run: Run, job_id: JobId, text: str) -> None:
    done = run("why", "--url", URL, "--", text)

    assert (done.code, done.out) == (2, "")
    assert "a job id is a UUID, or its first 8 characters or more" in done.err
    assert "\x1b" not in done.err
    del job_id


def test_a_job_that_is_not_here_ends_with_four_and_says_what_to_look_at(run: Run, job_id: JobId) -> None:
    done = run("why", FAR, "--url", URL)
    slip = run("why", f"{job_id[:-1]}{'0' if job_id[-1] != '0' else '1'}", "--url", URL, "--json")

    assert (done.code, f"there is no job {FAR} here" in done.out) == (4, True)
    assert (slip.code, slip.document["found"], slip.document["reasons"][0]["name"]) == (4, False, "near_id")
    assert run("why", FAR, "--url", "sqlite:///other.db").code == 5


def test_what_a_job_wrote_is_obeyed_by_no_terminal(run: Run, job_id: JobId) -> None:
    with windlass.connect_sync(URL) as client:
        claim = client.claim("email")
        assert claim is not None
        client.dead_letter(claim, "no \x1b[2J[bold]such\u202e user")

    done = run("why", job_id, "--url", URL)

    assert "no \\x1b[2J[bold]such\\u202e user" in done.out
    assert "\x1b" not in done.out
