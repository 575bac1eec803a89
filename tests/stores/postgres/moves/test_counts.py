"""Counts that are exact while they are added up, and quick however many changes there are."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.stores.postgres.moves.moving import Mover
from windlass.core.commands import CancelJobs
from windlass.core.queries import GetMinutes, GetStats
from windlass.core.retention import KEEP_ALL
from windlass.core.stats import Totals
from windlass.stores.postgres import queries
from windlass.stores.postgres.moves.fold import fold
from windlass.stores.postgres.moves.operate import cancel
from windlass.testing.conformance.given import HOUR, MINUTE, a_job

LEFT = "select count(*) from windlass_delta"


async def some_work(mover: Mover) -> None:
    ids = await mover.enqueue(a_job(kind="a"), a_job(), a_job("other", kind="a"), a_job(delay=HOUR))
    await mover.claim()
    await mover.do(cancel, CancelJobs(ids[1:2], KEEP_ALL))


async def test_adding_up_changes_no_answer(mover: Mover) -> None:
    await some_work(mover)
    since, until = datetime.now(UTC) - HOUR, datetime.now(UTC) + HOUR
    stats, minutes = GetStats(), GetMinutes(since, until)
    before = await mover.look(queries.stats, stats), await mover.look(queries.minutes, minutes)

    changes, highest = await mover.do(lambda _: fold())

    assert (changes > 4, highest >= changes, mover.run(LEFT)) == (True, True, [(0,)])
    assert await mover.do(lambda _: fold(highest)) == (0, highest)
    after = await mover.look(queries.stats, stats), await mover.look(queries.minutes, minutes)
    assert after == before
    [default, other] = after[0]
    assert (default.pending, default.scheduled, default.running, default.cancelled) == (0, 1, 1, 1)
    assert (other.pending, other.totals) == (1, Totals(enqueued=1))


async def test_every_look_sees_every_change_once_while_they_are_added_up(mover: Mover) -> None:
    total = 300
    done = asyncio.Event()

    async def add_up() -> None:
        while not done.is_set():
            await mover.do(lambda _: fold())

    async def look_on() -> list[int]:
        seen: list[int] = []
        while not done.is_set():
            rows = await mover.look(queries.stats, GetStats("default"))
            seen += [row.totals.enqueued for row in rows]
            assert all(row.pending == row.totals.enqueued for row in rows)
        return seen

    adding, looking = asyncio.ensure_future(add_up()), asyncio.ensure_future(look_on())
    for _ in range(total):
        await mover.enqueue(a_job())
    done.set()
    await adding

    seen = await looking
    assert seen == sorted(seen)
    assert (await mover.stats()).pending == total


async def test_one_adds_up_at_a_time(mover: Mover) -> None:
    await some_work(mover)

    with mover.somebody() as connection:
        connection.execute("select pg_advisory_xact_lock(1466524773, 'windlass_delta'::regclass::oid::integer)")
        assert await mover.do(lambda _: fold(7)) == (0, 7)

    assert (await mover.do(lambda _: fold())).changes > 0


async def test_a_change_that_is_committed_late_is_added_when_all_are_looked_at(mover: Mover) -> None:
    with mover.somebody() as connection:
        connection.execute("insert into windlass_delta (minute, queue, kind, pending) values (now(), 'default', '', 1)")
        await mover.enqueue(a_job())
        _, highest = await mover.do(lambda _: fold())
        connection.commit()

    assert (await mover.do(lambda _: fold(highest))).changes == 0
    assert (await mover.stats()).pending == 2
    assert (await mover.do(lambda _: fold())).changes == 1
    assert (await mover.stats()).pending == 2


async def test_minutes_hold_what_happened_and_not_where_jobs_stand(mover: Mover) -> None:
    await mover.enqueue(a_job(kind="a"), a_job(kind="a"))
    await mover.claim(2)
    await mover.do(lambda _: fold())

    rows = mover.run("select kind, pending, running, enqueued_total from windlass_count where minute < 'infinity'")
    assert rows == [("a", 0, 0, 2)]
    now = datetime.now(UTC)
    [minute] = await mover.look(queries.minutes, GetMinutes(now - 2 * MINUTE, datetime.max.replace(tzinfo=UTC)))
    assert (minute.queue, minute.kind, minute.counts) == ("default", "a", Totals(enqueued=2))
    assert now - timedelta(minutes=2) < minute.minute <= now


async def test_the_oldest_waiting_job_is_found_among_all_priorities_and_past_marks(mover: Mover) -> None:
    jobs = [a_job()._replace(priority=priority) for priority in (7, 5, 9, 5, 2**31 - 1, 0)]
    ids = await mover.enqueue(*jobs)
    for age, job_id in enumerate(ids, 1):
        mover.run(
            "update windlass_job set run_at = created_at - %s * interval '1 s' where id = %s::uuid", [age, job_id]
        )
    run_ats = [(await mover.get(job_id)).run_at for job_id in ids]

    oldest = [(await mover.stats()).oldest_waiting]
    # marks that are wrong show that they are looked at: the jobs before them are not
    for priorities in ("{0,5}", "{0,5,2147483647}", "{0,5,9,2147483647}", "{0,3,5,7,9,2147483647}"):
        mover.run(
            "insert into windlass_queue (queue, priorities, marks)"
            " values ('default', %s::int[], array_fill(clock_timestamp(), array[cardinality(%s::int[])]))"
            " on conflict (queue) do update set priorities = excluded.priorities, marks = excluded.marks",
            [priorities, priorities],
        )
        oldest.append((await mover.stats()).oldest_waiting)

    assert oldest == [run_ats[5], run_ats[4], run_ats[2], run_ats[0], None]
