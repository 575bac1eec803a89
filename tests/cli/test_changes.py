import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.cli.conftest import URL, Run
from tests.cli.given_jobs import Given, fill
from windlass import JobFilter, State
from windlass.cli import job_changes
from windlass.client import operations
from windlass.core.errors import StoreUnavailable
from windlass.core.looks import AuditEntry
from windlass.core.requests import Changed


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    monkeypatch.setenv("WINDLASS_URL", URL)
    return fill(URL)


def states(*ids: str) -> list[State | None]:
    with windlass.connect_sync(URL) as client:
        return [None if (job := client.get(each)) is None else job.state for each in ids]


def audit() -> list[AuditEntry]:
    with windlass.connect_sync(URL) as client:
        return client.run(lambda inner: inner.store.audit(limit=10))


def test_jobs_are_changed_by_their_ids_and_the_audit_says_by_whom(run: Run, given: Given) -> None:
    retried = run("jobs", "retry", given.dead, "--as", "ops")
    cancelled = run("jobs", "cancel", given.pending, given.running)
    deleted = run("jobs", "delete", given.succeeded, "--json")

    assert retried.out == f"{given.dead}: pending again\n"
    assert cancelled.err == "note: 1 job of them running: asked to stop, which is up to the handler\n"
    assert deleted.document == {"done": [given.succeeded], "failed": []}
    assert states(given.dead, given.pending, given.succeeded) == [State.PENDING, State.CANCELLED, None]
    third, second, first = audit()
    assert (first.actor, first.action, first.target) == ("ops", "retry", given.dead)
    assert (second.action, second.target) == ("cancel", "2 jobs")
    assert second.detail == {"ids": f"{given.pending} {given.running}"}
    assert "@" in third.actor


def test_of_several_those_that_can_be_are_changed_and_the_others_told(run: Run, given: Given) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"

    done = run("jobs", "retry", nobody, given.dead, given.succeeded, "--json")

    assert done.code == 4
    assert done.document["done"] == [given.dead]
    assert [each["id"] for each in done.document["failed"]] == [nobody, given.succeeded]
    assert "is succeeded; this needs one that is dead or cancelled" in done.err
    assert run("jobs", "delete", given.pending).code == 1


@pytest.mark.parametrize(
    "words,said",
    [
        (["retry"], "say which jobs are meant"),
        (["delete", "--yes"], "say which jobs are meant"),
        (["cancel", "x", "--all"], "give ids or a filter, one of both"),
        (["cancel", "x", "--queue", "mail"], "give ids or a filter, one of both"),
        (["reschedule", "--all"], "say when: --at or --in"),
        (["reschedule", "--all", "--in", "1h", "--at", "2030-01-01T00:00:00Z"], "say when: --at or --in"),
        (["retry", "--all"], "nobody is here to answer: give --yes"),
        (["retry", "--all", "--as", "a b"], "has the character ' '"),
        (["delete", "--error", "", "--yes"], "which every job would match"),
        (["retry", "--state", "pending", "--yes"], "no job that is pending can be meant"),
    ],
)
def test_what_is_not_clear_changes_nothing(run: Run, given: Given, words: list[str], said: str) -> None:
    done = run("jobs", *words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert states(given.dead, given.pending) == [State.DEAD, State.PENDING]
    assert audit() == []


def test_a_dry_run_counts_and_changes_nothing(run: Run, given: Given) -> None:
    assert run("jobs", "cancel", "--queue", "mail", "--dry-run").out == "3 jobs would be cancelled\n"
    assert run("jobs", "cancel", "--kind", "nothing", "--dry-run").out == "no job matches\n"
    assert states(given.pending) == [State.PENDING]
    assert audit() == []


def test_jobs_are_changed_by_filter_and_counted(run: Run, given: Given) -> None:
    cancelled = run("jobs", "cancel", "--text", "send", "--queue", "mail", "--yes", "--json").document
    deleted = run("jobs", "delete", "--all", "--yes")

    assert cancelled == {
        "action": "cancel",
        "matched": 1,
        "changed": 1,
        "asked_to_stop": 1,
        "key_held": 0,
        "dry_run": False,
        "interrupted": False,
    }
    assert deleted.out == "2 jobs deleted\n"
    assert states(given.dead, given.succeeded, given.later) == [None, None, State.SCHEDULED]
    assert audit()[0].detail == {"count": "2"}
    assert audit()[1].detail == {"count": "1", "queue": "mail", "text": "send"}


@pytest.mark.usefixtures("given")
def test_a_text_that_was_looked_for_in_payloads_is_not_told_by_the_audit(run: Run) -> None:
    done = run("jobs", "retry", "--payload-text", "hush", "--yes")

    assert (done.code, audit()[0].detail) == (0, {"count": "1", "payload_text": "***"})


def test_waiting_jobs_are_moved_in_time(run: Run, given: Given) -> None:
    assert run("jobs", "run-now", given.later).out == f"{given.later}: to run now\n"
    assert states(given.later) == [State.PENDING]

    assert run("jobs", "reschedule", "--queue", "mail", "--in", "1h", "--yes").code == 0
    assert states(given.later, given.pending) == [State.SCHEDULED, State.SCHEDULED]
    assert run("jobs", "reschedule", given.later, "--at", "2020-01-01T00:00:00Z").code == 0
    assert states(given.later) == [State.PENDING]


def test_the_store_may_be_that_of_an_app(run: Run, app_file: Path) -> None:
    assert app_file.exists()
    run("enqueue", "take", "--app", "tasks:app")

    assert run("jobs", "cancel", "--kind", "take", "--yes", "--app", "tasks:app").out == "1 job cancelled\n"


def test_dead_jobs_have_commands_of_their_own(run: Run, given: Given) -> None:
    assert run("dead", "--json").document["jobs"][0]["id"] == given.dead
    [group] = run("dead", "--group", "--json").document["groups"]
    assert (group["error"], group["count"], group["kinds"], group["queues"]) == ("ValueError", 1, ["send"], ["mail"])

    assert run("dead", "retry", "--error", "kaputt", "--yes").out == "1 job pending again\n"
    assert run("dead", "delete", "--all", "--yes").out == "no job matches\n"
    assert run("dead").err == "no dead jobs here\n"
    assert states(given.dead, given.succeeded) == [State.PENDING, State.SUCCEEDED]


def test_jobs_that_come_meanwhile_are_left(run: Run, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    def enqueue_more() -> None:
        with windlass.connect_sync(URL) as client:
            client.enqueue("mail")

    monkeypatch.setattr(job_changes, "progress_bar", after_each(enqueue_more))
    monkeypatch.setattr(operations, "CHUNK", 1)

    done = run("jobs", "cancel", "--queue", "mail", "--state", "pending", "--yes")

    assert done.out == "1 job cancelled\n"
    assert states(given.pending) == [State.CANCELLED]
    with windlass.connect_sync(URL) as client:
        assert len(list(client.jobs(JobFilter(queue="mail", state="pending")))) == 1


def test_ctrl_c_stops_between_two_chunks_and_what_was_done_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue_many([windlass.NewJob("mail")] * 10)
    monkeypatch.setattr(job_changes, "progress_bar", after_each(lambda: os.kill(os.getpid(), signal.SIGINT), once=True))
    monkeypatch.setattr(operations, "CHUNK", 2)

    done = run("jobs", "cancel", "--all", "--yes", "--url", URL)

    with windlass.connect_sync(URL) as client:
        cancelled = client.stats("mail").cancelled
    assert done.code == 130
    assert 0 < cancelled < 10
    assert done.out == f"{cancelled} jobs cancelled of 10: the rest is as it was\n"
    [entry] = audit()
    assert entry.detail == {"count": str(cancelled), "interrupted": "yes"}


def test_what_was_done_before_the_store_went_away_is_told_and_written_down(
    run: Run, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any, **kwargs: Any) -> AsyncGenerator[Counter[Changed]]:  # noqa: ANN401 - as `chunks`
        async for chunk in operations.chunks(*args, **kwargs):
            yield chunk
            raise StoreUnavailable("the store is gone")

    monkeypatch.setattr(job_changes, "chunks", broken)

    done = run("jobs", "cancel", "--queue", "mail", "--yes")

    assert done.code == 5
    assert done.out == "1 job cancelled of 3: the rest is as it was\n"
    assert done.err == "error: the store is gone\n"
    assert states(given.later, given.pending) == [State.CANCELLED, State.PENDING]
    [entry] = audit()
    assert entry.detail == {"count": "1", "queue": "mail", "interrupted": "yes"}


def after_each(call: Callable[[], None], *, once: bool = False) -> Callable[[str, int | None], Any]:
    """A bar that calls something whenever more is done."""
    called = list[int]()

    @contextmanager
    def bar(what: str, total: int | None) -> Generator[Callable[[int], None]]:
        del what, total

        def advance(count: int) -> None:
            if not (once and called):
                called.append(count)
                call()

        yield advance

    return bar
