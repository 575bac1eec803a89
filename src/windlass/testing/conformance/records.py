"""What is kept beside the jobs: deliveries, progress, log lines, servers, audit."""

import socket
from dataclasses import replace
from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.job import Delivery, Failure, Note, Progress
from windlass.core.looks import AuditEntry, Finding, ServerRecord
from windlass.core.names import HISTORY_KEPT, LOG_LINES_KEPT, MAX_TRACEBACK
from windlass.core.requests import Changed, RescueRequest
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import (
    DAY,
    MINUTE,
    SECOND,
    a_job,
    claim_one,
    claimed,
    found,
    released,
    settlement,
    wanting,
)


async def test_a_running_delivery_has_no_end(store: Store, clock: FakeClock) -> None:
    job = a_job()
    await store.enqueue([job])

    await claim_one(store, worker="w1")

    [read] = await store.get([job.id])
    assert read is not None
    assert read.history == (Delivery(1, 1, clock.now(), None, "w1", None),)


async def test_every_delivery_is_told_with_its_outcome(store: Store, clock: FakeClock) -> None:
    failure = Failure("no such user", "ValueError", "Traceback ...", "builtins")
    zero = timedelta(0)
    verdicts: list[Verdict] = [
        ToRetry(zero, failure),
        ToSnoozed(zero),
        ToReleased(),
        ToCancelled("no"),
        ToDead(failure),
        ToSucceeded(),
    ]
    job = a_job(max_attempts=9)
    await store.enqueue([job])
    start = clock.now()
    for verdict in verdicts:
        claim = await claim_one(store, worker="w1")
        clock.advance(SECOND)
        await store.settle([settlement(claim, verdict)])
        await store.retry([job.id])

    [read] = await store.get([job.id])
    assert read is not None
    outcomes = ["failed", "snoozed", "released", "cancelled", "failed", "succeeded"]
    assert [each.outcome for each in read.history] == outcomes
    assert [each.delivery for each in read.history] == [1, 2, 3, 4, 5, 6]
    assert [each.started_at for each in read.history] == [start + n * SECOND for n in range(6)]
    assert [each.ended_at for each in read.history] == [start + n * SECOND for n in range(1, 7)]
    assert {each.worker for each in read.history} == {"w1"}
    assert (read.history[0].failure, read.history[1].failure) == (failure, None)
    retried = {each.delivery: each.retried_at for each in read.history if each.retried_at is not None}
    assert retried == {4: start + 4 * SECOND, 5: start + 5 * SECOND}


async def test_a_failure_is_kept_with_the_module_of_its_type(store: Store) -> None:
    failures = [
        Failure("no", "Refused", None, "shop.orders"),
        Failure("no", "Refused"),
        Failure("no", "Refused", None, ""),
        Failure("words alone"),
    ]
    job = a_job(max_attempts=9)
    await store.enqueue([job])
    for failure in failures:
        await store.settle([settlement(await claim_one(store), ToRetry(timedelta(0), failure))])
    await store.settle([settlement(await claim_one(store), ToDead(Failure("ü", "Lost", "Traceback", "a.ü")))])

    [read] = await store.get([job.id])
    assert read is not None
    assert [each.failure for each in read.history] == [*failures, Failure("ü", "Lost", "Traceback", "a.ü")]
    assert read.last_error == "Lost: ü"


async def test_the_exception_of_an_attempt_is_kept_with_its_module(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.nack(await claimed(client, "email"), KeyError("gone"))

    [delivery] = (await found(client, done.id)).history
    assert delivery.failure is not None
    assert (delivery.failure.type, delivery.failure.module) == ("KeyError", "builtins")


async def test_an_operators_retry_is_noted_on_the_delivery_before_it(store: Store, clock: FakeClock) -> None:
    failure = Failure("no", "Refused", "Traceback ...", "shop")
    job = a_job(max_attempts=1)
    await store.enqueue([job])
    await store.settle([settlement(await claim_one(store), ToDead(failure))])
    clock.advance(MINUTE)

    assert await store.retry([job.id, job.id]) == [Changed.DONE, Changed.WRONG_STATE]

    retried_at = clock.now()
    clock.advance(MINUTE)
    await store.settle([settlement(await claim_one(store))])
    [read] = await store.get([job.id])
    assert read is not None
    assert [(each.delivery, each.outcome, each.failure, each.retried_at) for each in read.history] == [
        (1, "failed", failure, retried_at),
        (2, "succeeded", None, None),
    ]


async def test_a_retry_before_the_first_delivery_is_noted_on_one_of_the_number_zero(
    store: Store, clock: FakeClock
) -> None:
    job = a_job()
    await store.enqueue([job])
    clock.advance(SECOND)
    cancelled_at = clock.now()
    await store.cancel([job.id], KEEP_ALL)
    clock.advance(MINUTE)
    retried_at = clock.now()
    await store.retry([job.id])

    noted = Delivery(0, 0, cancelled_at, cancelled_at, None, "cancelled", None, retried_at)
    [waiting] = await store.get([job.id])
    assert waiting is not None
    assert (waiting.state, waiting.attempt, waiting.delivery, waiting.log) == (State.PENDING, 0, 0, ())
    assert waiting.history == (noted,)

    await store.cancel([job.id], KEEP_ALL)
    clock.advance(MINUTE)
    again_at = clock.now()
    await store.retry([job.id])
    claim = await claim_one(store, worker="w1")
    await store.note([Note(job.id, claim.token, None, [("info", "line")])])
    await store.settle([settlement(claim, ToReleased(started=True))])

    [read] = await store.get([job.id])
    assert read is not None
    assert read.history[0] == noted._replace(retried_at=again_at)
    assert [(each.delivery, each.outcome) for each in read.history] == [(0, "cancelled"), (1, "released")]
    assert [(line.text, line.delivery) for line in read.log] == [("line", 1)]


@pytest.mark.parametrize("end", ["ack", "ack of many", "prune", "delete"])
async def test_nothing_is_left_of_a_job_that_was_retried_before_its_first_delivery(
    store: Store, clock: FakeClock, end: str
) -> None:
    job, other = a_job(), a_job()
    await store.enqueue([job])
    await store.cancel([job.id], KEEP_ALL)
    await store.retry([job.id])
    if end.startswith("ack"):
        await store.enqueue([other])
        claims = (await store.claim(wanting(limit=2 if end == "ack of many" else 1))).jobs
        await store.settle([settlement(claim)._replace(keep=False) for claim in claims])
    else:
        await store.cancel([job.id], KEEP_ALL)
        clock.advance(DAY)
        if end == "prune":
            await store.prune(Retention(Keep(cancelled=SECOND)), limit=10)
        else:
            await store.delete([job.id])
    assert await store.get([job.id]) == [None]

    await store.enqueue([a_job()._replace(id=job.id)])

    [read] = await store.get([job.id])
    assert read is not None
    assert (read.history, read.log) == ((), ())


async def test_a_rescued_delivery_is_told(store: Store, clock: FakeClock) -> None:
    job = a_job()
    await store.enqueue([job])
    await claim_one(store, worker="w1")
    clock.advance(MINUTE)

    await store.rescue(RescueRequest(), KEEP_ALL)

    [read] = await store.get([job.id])
    assert read is not None
    [delivery] = read.history
    assert (delivery.outcome, delivery.ended_at, delivery.worker) == ("rescued", clock.now(), "w1")


async def test_the_last_twenty_deliveries_are_kept(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    for _ in range(HISTORY_KEPT + 5):
        await store.settle([released(await claim_one(store))])

    [read] = await store.get([job.id])
    assert read is not None
    assert [each.delivery for each in read.history] == list(range(6, HISTORY_KEPT + 6))
    assert {each.outcome for each in read.history} == {"released"}


async def test_the_traceback_of_an_exception_is_kept_within_its_limit(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    try:
        raise ValueError("x" * 100_000)  # noqa: TRY301
    except ValueError as error:
        await client.nack(claim, error)

    [delivery] = (await found(client, done.id)).history
    assert delivery.failure is not None
    assert delivery.failure.type == "ValueError"
    assert 0 < len(delivery.failure.traceback or "") <= MAX_TRACEBACK


async def test_a_running_job_reports_its_progress(store: Store, clock: FakeClock) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    clock.advance(SECOND)

    written = await store.note([Note(job.id, claim.token, Progress(1, 4, "ü"), [("info", "begun"), ("error", "ü")])])

    assert written == [True]
    [read] = await store.get([job.id])
    assert read is not None
    assert read.progress == Progress(1, 4, "ü")
    assert [tuple(line) for line in read.log] == [
        (clock.now(), "info", "begun", 1),
        (clock.now(), "error", "ü", 1),
    ]


async def test_progress_begins_anew_with_each_claim_and_the_log_goes_on(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    first = await claim_one(store)
    await store.note([Note(job.id, first.token, Progress(3, 4), [("info", "one")])])
    await store.settle([released(first)])
    second = await claim_one(store)
    assert second.job.progress is None

    await store.note([Note(job.id, second.token, None, [("info", "two")])])

    [read] = await store.get([job.id])
    assert read is not None
    assert [(line.text, line.delivery) for line in read.log] == [("one", 1), ("two", 2)]


async def test_lines_without_progress_leave_the_progress(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    await store.note([Note(job.id, claim.token, Progress(1))])

    await store.note([Note(job.id, claim.token, None, [("info", "line")])])

    [read] = await store.get([job.id])
    assert read is not None
    assert read.progress == Progress(1, None, None)


async def test_the_last_lines_of_a_log_are_kept(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)

    await store.note([Note(job.id, claim.token, None, [("info", str(n)) for n in range(LOG_LINES_KEPT)])])
    await store.note([Note(job.id, claim.token, None, [("info", "last")])])

    [read] = await store.get([job.id])
    assert read is not None
    assert len(read.log) == LOG_LINES_KEPT
    assert (read.log[0].text, read.log[-1].text) == ("1", "last")


async def test_a_deleted_job_leaves_no_history_to_its_successor(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    await store.note([Note(job.id, claim.token, None, [("info", "old")])])
    await store.settle([settlement(claim)])
    await store.delete([job.id])

    await store.enqueue([job])

    [read] = await store.get([job.id])
    assert read is not None
    assert (read.history, read.log, read.delivery) == ((), (), 0)


def _server(clock: FakeClock, name: str = "web") -> ServerRecord:
    return ServerRecord(
        id=f"{name}#1",
        name=name,
        host="host",
        pid=42,
        version="0.1.0",
        started_at=clock.now(),
        seen_at=clock.now(),
        queues=("email", "sms"),
        kinds=("send",),
        schedules=("nightly",),
        running=3,
        details={"threads": "2"},
    )


async def test_a_server_is_seen_until_it_leaves(store: Store, clock: FakeClock) -> None:
    server = _server(clock)
    await store.beat(server)
    assert await store.servers() == [server]

    await store.leave(server.id)

    assert await store.servers() == []
    await store.leave(server.id)


async def test_the_store_stamps_when_a_server_was_seen(store: Store, clock: FakeClock) -> None:
    server = _server(clock)
    await store.beat(server)
    clock.advance(MINUTE)

    await store.beat(replace(server, running=0))

    assert await store.servers() == [replace(server, running=0, seen_at=clock.now())]


async def test_a_server_that_is_silent_is_listed_for_a_day(store: Store, clock: FakeClock) -> None:
    old, new = _server(clock), _server(clock, "new")
    await store.beat(old)
    clock.advance(DAY / 2)
    await store.beat(new)
    await store.prune(KEEP_ALL, limit=10)
    assert len(await store.servers()) == 2

    clock.advance(DAY / 2 + SECOND)
    await store.prune(KEEP_ALL, limit=10)

    assert [server.id for server in await store.servers()] == [new.id]


async def test_a_live_server_means_that_no_lease_is_stranded(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job()])
    await claim_one(store, lease=SECOND)
    clock.advance(MINUTE)
    await store.beat(_server(clock))
    assert await store.stranded(dead_after=MINUTE) == 0

    clock.advance(MINUTE + SECOND)

    assert await store.stranded(dead_after=MINUTE) == 1


async def test_a_server_that_lives_has_not_ended_however_silent_it_is(store: Store, clock: FakeClock) -> None:
    here = replace(_server(clock), host=socket.gethostname())
    await store.beat(here)
    await store.beat(_server(clock, "elsewhere"))
    clock.advance(DAY)

    assert await store.ended_servers() == []

    await store.leave(here.id)
    assert await store.ended_servers() == []


async def test_what_people_did_is_kept_newest_first(store: Store, clock: FakeClock) -> None:
    entries = [
        AuditEntry(clock.now() + n * SECOND, "ada", "retry", f"job-{n}", {"count": str(n), "ü": "ü"}) for n in range(3)
    ]
    await store.write_audit(entries[:2])
    await store.write_audit(entries[2:])

    assert await store.audit(limit=10) == entries[::-1]
    assert await store.audit(limit=1) == entries[:1:-1]


async def test_minute_counts_are_kept_for_eight_days(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    await store.enqueue([a_job()])
    clock.advance(7 * DAY)
    await store.prune(KEEP_ALL, limit=10)
    assert len(await store.minutes(since=start - DAY, until=clock.now())) == 1

    clock.advance(2 * DAY)
    await store.prune(KEEP_ALL, limit=10)

    assert await store.minutes(since=start - DAY, until=clock.now()) == []
    [row] = await store.stats()
    assert row.totals.enqueued == 1


async def test_a_healthy_store_has_no_errors_to_report(store: Store) -> None:
    findings = await store.check()

    assert all(isinstance(finding, Finding) for finding in findings)
    assert [finding for finding in findings if finding.level == "error"] == []
