"""Commands that meet a damaged record, in a SQLite file."""

import sqlite3
from contextlib import closing

import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass import NewJob


def write(statement: str) -> None:
    with closing(sqlite3.connect(URL.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.fixture
def jobs() -> list[str]:
    """Put four jobs in line, and damage the kind of the second and the times of the third."""
    with windlass.connect_sync(URL) as client:
        made = [job.id for job in client.enqueue_many([NewJob("mail", b"hello", kind="send") for _ in range(4)])]
    write(f"update windlass_job set kind = cast(x'ff' as text) where id = '{made[1]}'")
    write(f"update windlass_job set created_at = {2**62}, run_at = {2**62} where id = '{made[2]}'")
    return list(made)


def set_aside() -> None:
    """Claim all jobs, so that the damaged ones become dead."""
    with windlass.connect_sync(URL) as client:
        assert len(client.claim_many("mail", limit=10)) == 2


def test_a_list_marks_the_damaged_jobs_among_the_others(
    run: Run, jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        told = run("jobs", "--url", URL)

        assert told.code == 0
        assert all(job in told.out for job in jobs)
        assert told.out.count("damaged record") == 2
        assert "1970" not in told.out


def test_a_list_for_programs_has_the_damage(run: Run, jobs: list[str]) -> None:
    told = run("jobs", "--json", "--url", URL).document["jobs"]

    assert {job["id"]: job["damage"] for job in told} == {
        jobs[0]: None,
        jobs[1]: "kind is not UTF-8: b'\\xff'",
        jobs[2]: f"created_at is out of range: {2**62}; run_at is out of range: {2**62}",
        jobs[3]: None,
    }


def test_a_job_that_is_shown_names_its_damage_and_no_stand_in_for_a_time(run: Run, jobs: list[str]) -> None:
    told = run("jobs", "show", jobs[2], "--url", URL)

    assert told.code == 0
    [line] = [line for line in told.out.splitlines() if line.startswith("damage")]
    assert "created_at is out of range" in line
    assert "1970" not in told.out
    assert "hello" in told.out


def test_why_begins_with_the_damage_and_what_to_do(run: Run, jobs: list[str]) -> None:
    waits = run("why", jobs[1], "--json", "--url", URL).document["reasons"][0]
    set_aside()
    dead = run("why", jobs[1], "--url", URL)

    assert waits["name"] == "damaged"
    assert waits["message"] == "its stored record is damaged: kind is not UTF-8: b'\\xff'"
    assert "else the next claim makes the job dead" in waits["advice"]
    assert dead.code == 0
    assert dead.out.splitlines()[1].split()[:5] == ["1.", "its", "stored", "record", "is"]
    assert f"windlass jobs retry {jobs[1]}" in " ".join(dead.out.split())


def test_the_dead_are_listed_and_grouped_by_the_damage(run: Run, jobs: list[str]) -> None:
    set_aside()

    listed, grouped = run("dead", "--url", URL), run("dead", "--group", "--json", "--url", URL)

    assert all((job in listed.out) == (job in jobs[1:3]) for job in jobs)
    [group] = grouped.document["groups"]
    assert (group["error"], group["count"]) == ("DamagedRecord", 2)


def test_a_damaged_job_that_is_dead_can_be_deleted(run: Run, jobs: list[str]) -> None:
    set_aside()

    assert run("jobs", "delete", jobs[1], jobs[2], "--yes", "--url", URL).code == 0
    assert run("dead", "--json", "--url", URL).document["jobs"] == []


def test_a_call_that_cannot_be_done_names_the_job_and_the_field(run: Run, jobs: list[str]) -> None:
    write(f"update windlass_job set state = 'lost' where id = '{jobs[3]}'")

    ended = run("jobs", "cancel", jobs[0], jobs[3], "--yes", "--url", URL)

    assert ended.code != 0
    assert f"job {jobs[3]} is damaged: state is no state: 'lost'" in ended.err
    assert "Traceback" not in ended.err
    assert run("jobs", "show", jobs[0], "--json", "--url", URL).document["state"] == "cancelled"


def test_a_move_leaves_the_damaged_and_ends_with_a_failure_that_names_them(run: Run, jobs: list[str]) -> None:
    with windlass.connect_sync(URL) as client:
        client.run(lambda inner: inner.schedules.put("nightly", 60, NewJob("mail")))
        client.run(lambda inner: inner.schedules.put("often", 60, NewJob("mail")))
    write("update windlass_schedule set headers = '[' where id = 'often'")
    target = "sqlite:///new.db"

    ended = run("move", URL, target, "--yes")

    assert ended.code == 1
    assert "2 jobs, 1 schedule, 0 kv values went to" in ended.out
    assert "2 jobs stayed in the source, since the stored record is damaged:" in ended.out
    assert f"{jobs[1]}: kind is not UTF-8" in ended.out
    assert "often: headers is not JSON" in ended.out
    assert {job["id"] for job in run("jobs", "--json", "--url", target).document["jobs"]} == {jobs[0], jobs[3]}

    write("update windlass_job set kind = 'send', created_at = 0, run_at = 0")
    write("update windlass_schedule set headers = null")
    again = run("move", URL, target, "--yes", "--json")

    assert (again.code, again.document["jobs"], again.document["schedules"]) == (0, 2, 1)
    assert (again.document["damaged"], again.document["damaged_schedules"]) == ([], [])


def test_a_damaged_schedule_is_listed_and_shown_as_such(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.run(lambda inner: inner.schedules.put("often", 60, NewJob("mail")))
    write("update windlass_schedule set catch_up = 'never'")

    listed, shown = run("schedules", "--url", URL), run("schedules", "show", "often", "--url", URL)

    assert "damaged" in listed.out
    assert "catch_up is none of one, none, all: 'never'" in shown.out
    refused = run("schedules", "pause", "often", "--url", URL)
    assert refused.code != 0
    assert "put it again, or remove it" in refused.err


def test_doctor_tells_of_the_jobs_that_were_set_aside_and_of_damaged_schedules(run: Run, jobs: list[str]) -> None:
    def finding() -> dict[str, str]:
        found: list[dict[str, str]] = run("doctor", "--json", "--url", URL).document["findings"]
        [damaged] = [each for each in found if each["name"] == "damaged"]
        return damaged

    assert finding()["level"] == "ok"
    set_aside()
    with windlass.connect_sync(URL) as client:
        client.run(lambda inner: inner.schedules.put("often", 60, NewJob("mail")))
    write("update windlass_schedule set headers = '['")

    told = finding()

    assert told["level"] == "warning"
    assert told["message"] == f"the stored record is damaged of 2 dead jobs, the newest {jobs[2]}; schedules: often"
