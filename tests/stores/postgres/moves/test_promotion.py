"""Due jobs become pending: whatever their queue, and wherever the marks lie."""

import asyncio
from datetime import timedelta

from tests.stores.postgres.moves.moving import Counted, Mover
from windlass.core.commands import PromoteJobs
from windlass.core.states import State
from windlass.core.topics import queue_topic
from windlass.stores.postgres.moves.promote import promote, promote_queues
from windlass.testing.conformance.given import HOUR, a_job

DUE = "update windlass_job set run_at = clock_timestamp() - %s::interval where queue = any(%s)"
LINE = "select queue, state, count(*)::int from windlass_job group by 1, 2 order by 1, 2"


async def scheduled(mover: Mover, *queues: str, due: list[str]) -> None:
    """Schedule a job in each queue, and let those of `due` come due."""
    await mover.enqueue(*(a_job(queue, delay=HOUR) for queue in queues))
    mover.run(DUE, [timedelta(seconds=1), due])


async def test_due_jobs_of_every_queue_are_promoted_and_no_others(mover: Mover) -> None:
    await scheduled(mover, "a", "b", "c", "d", due=["a", "c", "d"])

    assert await mover.do(promote, PromoteJobs(100)) == 3

    assert mover.run(LINE) == [("a", "pending", 1), ("b", "scheduled", 1), ("c", "pending", 1), ("d", "pending", 1)]
    assert mover.told >= {queue_topic(queue) for queue in "acd"}
    assert (await mover.stats("c")).pending == 1


async def test_no_more_are_promoted_at_once_than_are_wanted(mover: Mover) -> None:
    await scheduled(mover, *["a"] * 5, *["b"] * 5, due=["a", "b"])

    counts = [await mover.do(promote, PromoteJobs(4)) for _ in range(4)]

    assert counts == [4, 4, 2, 0]


async def test_a_job_that_somebody_has_locked_does_not_hold_up_the_others(mover: Mover) -> None:
    await scheduled(mover, "a", "a", due=["a"])

    with mover.somebody() as connection:
        connection.execute("select from windlass_job order by seq limit 1 for update")
        assert await mover.do(promote, PromoteJobs(100)) == 1

    assert await mover.do(promote, PromoteJobs(100)) == 1


async def test_promoters_at_once_promote_each_job_once(mover: Mover) -> None:
    await scheduled(mover, *["a", "b", "c"] * 100, due=["a", "b", "c"])

    counts = await asyncio.gather(
        *(mover.do(promote, PromoteJobs(50)) for _ in range(10)),
        *(mover.do(promote_queues, ["c", "a"], 50) for _ in range(10)),
    )
    while promoted := await mover.do(promote, PromoteJobs(50)):
        counts.append(promoted)

    assert sum(counts) == 300
    assert {row[1] for row in mover.run(LINE)} == {State.PENDING}


async def test_a_promotion_lowers_the_mark_above_the_place_of_its_job(mover: Mover) -> None:
    await scheduled(mover, "a", "b", due=["a", "b"])
    mover.run(
        "insert into windlass_queue (queue, priorities, marks)"
        " select queue, '{500,1000}', array[clock_timestamp(), clock_timestamp()] from unnest('{a,b}'::text[]) as queue"
    )

    await mover.do(promote, PromoteJobs(1))

    rows = mover.run("select queue, marks[2] <= (select min(run_at) from windlass_job) from windlass_queue order by 1")
    assert rows == [("a", True), ("b", False)]
    assert mover.run("select distinct marks[1] > clock_timestamp() - interval '5 s' from windlass_queue") == [(True,)]
    assert [job.queue for job in [claim.job for claim in await mover.claim(queue="a")]] == ["a"]


async def test_a_queue_with_a_mark_is_looked_at_from_there_on_and_those_between_are_not_missed(mover: Mover) -> None:
    await scheduled(mover, "a", "b", "c", "d", "e", due=["a", "b", "c", "d", "e"])
    # a mark that is wrong shows that it is looked at
    mover.run(
        "insert into windlass_queue (queue, due_mark) values ('b', clock_timestamp()), ('d', '-infinity'), ('z', null),"
        " ('ab', clock_timestamp()), ('dd', clock_timestamp())"
    )

    assert await mover.do(promote, PromoteJobs(100)) == 4

    assert [row[0] for row in mover.run(LINE) if row[1] == State.SCHEDULED] == ["b"]


async def test_nothing_is_locked_and_one_statement_run_while_nothing_is_due(mover: Mover) -> None:
    await scheduled(mover, "a", "b", due=[])
    counted = Counted()

    assert await mover.do(lambda changes: counted(promote(changes, PromoteJobs(100)))) == 0

    assert counted.statements == ["due_queues"]
