"""Damaged counts, receipts and marks in Postgres: they stop no call for other records, and are logged."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import msgspec
import pytest

from tests.stores.postgres.test_damaged import Run, claim, run, store, three
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob
from windlass.core.requests import ClaimRequest, RescueRequest, Settlement
from windlass.core.retention import Keep, Retention
from windlass.core.stats import QueueStats, TimingCount
from windlass.core.store import Store
from windlass.core.verdict import ToRetry, ToSucceeded
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.moves.fold import fold
from windlass.stores.postgres.moves.rescue import expired_seqs
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Statement, Work
from windlass.testing.conformance.given import a_job

__all__ = ["run", "store"]

MINUTE: Final = timedelta(minutes=1)
LARGEST: Final = 9223372036854775807
SMALLEST: Final = -9223372036854775808
MANY_YEARS: Final = {"since": datetime(2000, 1, 1, tzinfo=UTC), "until": datetime(2100, 1, 1, tzinfo=UTC)}
MARKS: Final = (
    ("{0,1}", "{2020-01-01}"),
    ("{0}", "{}"),
    ("{}", "{2020-01-01}"),
    ("{NULL}", "{2020-01-01}"),
    ("{0}", "{NULL}"),
    ("{{0,1}}", "{{2020-01-01,2020-01-02}}"),
    ("{{0,1}}", "{2020-01-01,2020-01-02}"),
)
"""Priorities and marks that are no pairs."""


def runner_of(store: Store) -> Runner:
    runner: Runner = cast("Any", store)._room.runner
    return runner


@pytest.fixture
def queue() -> str:
    """The name of the damaged queue: of its own for each test, since each damage is logged once."""
    return f"damaged-{secrets.token_hex(4)}"


def damage(run: Run, statement: str, column: str, *values: object) -> None:
    """Run a statement with the name of a column in place of its `~`."""
    cast("Any", run)(statement.replace("~", column), *values)


def value_of(row: QueueStats, column: str) -> int:
    """Return the count of a queue that a column holds."""
    return row.totals.enqueued if column == "enqueued_total" else getattr(row, column)


async def in_two_queues(store: Store, queue: str) -> None:
    await store.enqueue([a_job(queue), a_job("sound"), a_job("sound")])


@pytest.mark.parametrize("column", ["pending", "succeeded", "enqueued_total"])
@pytest.mark.parametrize("value", [LARGEST, SMALLEST])
@pytest.mark.parametrize("added_up", [True, False], ids=["count", "change"])
async def test_a_damaged_count_changes_nothing_for_other_queues(
    store: Store, run: Run, queue: str, column: str, value: int, *, added_up: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await in_two_queues(store, queue)
    if added_up:
        damage(
            run,
            "insert into windlass_count (minute, queue, kind, ~) values ('infinity', {}, '', {})",
            column,
            queue,
            value,
        )
    else:
        for _ in range(2):
            damage(
                run,
                "insert into windlass_delta (minute, queue, kind, ~) values (now(), {}, '', {})",
                column,
                queue,
                value,
            )
    await store.enqueue([a_job(queue)])

    for _ in range(2):
        rows = {row.queue: row for row in await store.stats()}
        assert (rows["sound"].pending, rows["sound"].totals.enqueued) == (2, 2)
        shown = value_of(rows[queue], column)
        assert abs(shown) == 2**53 if value > 0 or not added_up else shown <= -(2**53) + 3
        # also added up with those of other queues
        assert msgspec.json.encode([rows[queue], shown * 1000])
        await runner_of(store).run(lambda _: fold())
    assert [one.queue for one in await store.minutes(**MANY_YEARS) if one.counts.enqueued == 2][-1:] == ["sound"]
    assert [(one.queue, one.pending) for one in await store.waiting() if one.queue == "sound"] == [("sound", 2)]

    assert caplog.text.count("the counts of a queue are damaged") == 1
    assert repr(queue) in caplog.text
    if not added_up:
        # the damaged changes are not added to the counts: all is right again without them
        assert caplog.text.count("a change is not added to the counts") == 2
        assert len(run("delete from windlass_delta returning id")) == 2
        [row] = await store.stats(queue)
        assert (row.pending, row.succeeded, row.totals.enqueued) == (2, 0, 2)


async def test_a_damaged_count_of_a_minute_stops_no_other_count(store: Store, run: Run, queue: str) -> None:
    await in_two_queues(store, queue)
    await runner_of(store).run(lambda _: fold())
    run("update windlass_count set enqueued_total = {} where queue = {} and minute <> 'infinity'", LARGEST, queue)
    await in_two_queues(store, queue)

    assert (await runner_of(store).run(lambda _: fold())).changes == 2

    assert sum(one.counts.enqueued for one in await store.minutes(**MANY_YEARS) if one.queue == "sound") == 4
    [row] = await store.stats(queue)
    assert row.totals.enqueued == 2


async def test_a_damaged_number_of_finished_records_deletes_none_of_them(
    store: Store, run: Run, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    await three(store, queue)
    for one in (await store.claim(ClaimRequest([queue], 3, MINUTE))).jobs:
        await store.settle([Settlement(one.job.id, one.token, ToSucceeded())])
    run("insert into windlass_delta (minute, queue, kind, succeeded) values (now(), {}, '', {})", queue, LARGEST)

    assert await store.prune(Retention(Keep(), most=3), limit=10) == 0

    assert repr(queue) in caplog.text


async def test_a_damaged_timing_stops_no_other(store: Store, run: Run) -> None:
    minute = datetime(2026, 1, 1, tzinfo=UTC)
    timings = [TimingCount(minute, queue, "", "ran", 3, 1) for queue in ("damaged", "sound")]
    await store.write_timings(timings)
    run("update windlass_timing set count = {} where queue = 'damaged'", LARGEST)

    await store.write_timings(timings)

    counts = {one.queue: one.attempts for one in await store.timings(**MANY_YEARS)}
    assert counts["sound"] == 2
    assert counts["damaged"] >= 2**53


@pytest.mark.parametrize("reply", ["", "x", "[5]", '["done"', '[["id"]]', "\u00e9,5", "-1:1"])
@pytest.mark.parametrize("call", ["enqueue", "claim", "settle"])
async def test_a_call_whose_receipt_is_damaged_is_told_so_and_is_not_done_again(
    store: Store, run: Run, reply: str, call: str
) -> None:
    await three(store)
    [one] = (await store.claim(ClaimRequest(["default"], 1, MINUTE))).jobs
    new: Sequence[PreparedJob] = [a_job()]
    settlement = Settlement(one.job.id, one.token, ToRetry(MINUTE, Failure("it failed")))

    async def ask(name: str) -> object:
        if call == "enqueue":
            return await store.enqueue(new, request_id=name)
        if call == "claim":
            return (await store.claim(ClaimRequest(["default"], 1, MINUTE), request_id=name)).jobs
        return await store.settle([settlement], request_id=name)

    await ask("first")
    before = run("select id, state, attempt from windlass_job order by seq")
    run("update windlass_receipt set reply = {} where request_id like '%first'", reply)

    with pytest.raises(StoreCorrupt, match=r"receipt of the call '.*first'.*reply"):
        await ask("first")

    assert run("select id, state, attempt from windlass_job order by seq") == before
    assert await claim(store, limit=1)


@pytest.mark.parametrize(
    "mark", ["", "x", "2026-02-31 00:00:00+00", "infinity", "2026-01-01 00:00:00", "4713-01-01 BC"]
)
async def test_a_damaged_mark_of_leases_keeps_no_claim_from_its_rescue(
    store: Store, run: Run, mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids = await three(store)
    await claim(store)
    run("update windlass_job set lease_expires_at = now() - interval '1 hour'")
    run(
        "insert into windlass_meta (name, value) values ('lease_mark', {0})"
        " on conflict (name) do update set value = {0}",
        mark,
    )
    runner = runner_of(store)
    request = RescueRequest(limit=10)

    assert await store.stranded(dead_after=MINUTE) == 3
    assert len(await runner.look(lambda changes: expired_seqs(changes, request))) == 3
    assert {one.id for one in await store.rescue(request, Retention())} == set(ids)
    assert await runner.run(lambda _: marks.check_leases())
    assert not await runner.run(lambda _: marks.check_leases())

    assert caplog.text.count("the mark of leases is damaged") == 1


async def test_a_mark_of_leases_reads_whatever_the_format_of_dates(store: Store, run: Run) -> None:
    raised = datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    runner = runner_of(store)
    await runner.run(lambda _: marks.raise_mark(marks.Leases(), raised))

    assert await runner.run(lambda _: marks.lease_mark()) == raised
    assert run("select value::timestamptz = {} from windlass_meta where name = 'lease_mark'", raised) == [(True,)]


@pytest.mark.parametrize("priorities, times", MARKS)
@pytest.mark.parametrize("kinds", [None, [None]], ids=["heads", "of kinds"])
async def test_damaged_marks_hide_no_job(
    store: Store,
    run: Run,
    queue: str,
    *,
    priorities: str,
    times: str,
    kinds: list[str | None] | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = [a_job(queue)._replace(priority=priority) for priority in (0, 0, 1)]
    await store.enqueue(jobs)
    run("insert into windlass_queue (queue, priorities, marks) values ({}, {}, {})", queue, priorities, times)

    async def claimed() -> list[JobId]:
        return [one.job.id for one in (await store.claim(ClaimRequest([queue], 10, MINUTE, kinds))).jobs]

    place = await store.place(jobs[-1].id)
    assert place is not None
    assert place.ahead == 2
    [row] = await store.stats(queue)
    assert row.oldest_waiting is not None
    [(_, _, pending, oldest)] = await store.waiting()
    assert pending == 3
    assert oldest is not None
    assert await claimed() == [job.id for job in jobs]
    # back to their old places
    run("update windlass_job set lease_expires_at = now() - interval '1 hour'")
    assert len(await store.rescue(RescueRequest(limit=10), Retention())) == 3
    assert await claimed() == [job.id for job in jobs]

    runner = runner_of(store)
    assert (await runner.look(lambda _: _marked_queues())) == [queue]
    assert await runner.run(lambda _: marks.check(queue))
    assert run("select priorities, marks, due_mark from windlass_queue") == [([], [], None)]
    assert caplog.text.count("are no pairs") == 1


def _marked_queues() -> Work[list[str]]:
    rows = yield Statement("marked_queues")
    return [row[0] for row in rows]
