"""Records that go: in small batches, each once, and never more than are over."""

import asyncio
from datetime import timedelta

from tests.stores.postgres.moves.moving import Mover
from windlass.core.commands import CancelJobs, SetQueueSettings
from windlass.core.queue_settings import StoredSettings
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.stores.postgres.moves.operate import cancel, set_queue_settings
from windlass.stores.postgres.moves.prune import AT_ONCE, COUNTS, SMALL_RECORDS, forget_counts, forget_small, prune
from windlass.testing.conformance.given import DAY, HOUR, a_job

RECEIPTS = (
    "insert into windlass_receipt (request_id, at)"
    " select gen_random_uuid()::text, clock_timestamp() - %s::interval from generate_series(1, %s)"
)
OVER_AND_NOT = """
insert into windlass_hold values
    ('over', gen_random_uuid(), clock_timestamp(), ''),
    ('held', gen_random_uuid(), clock_timestamp() + interval '1 h', ''),
    ('by its job', gen_random_uuid(), null, '');
insert into windlass_lock values ('over', 'a', clock_timestamp()), ('held', 'a', clock_timestamp() + interval '1 h');
insert into windlass_server values
    ('gone', clock_timestamp(), clock_timestamp() - interval '25 h', '{}'),
    ('silent', clock_timestamp(), clock_timestamp() - interval '23 h', '{}');
insert into windlass_count (minute, queue, kind) values
    (clock_timestamp() - interval '9 days', 'q', ''),
    (clock_timestamp() - interval '7 days', 'q', ''),
    ('infinity', 'q', '');
"""


async def cancelled(mover: Mover, count: int, queue: str = "default") -> None:
    """Leave cancelled jobs, one a second older than the next."""
    ids = await mover.enqueue(*(a_job(queue) for _ in range(count)))
    await mover.do(cancel, CancelJobs(ids, KEEP_ALL))
    mover.run(
        "update windlass_job set finished_at = clock_timestamp() - (1000 - seq) * interval '1 s' where queue = %s",
        [queue],
    )


async def pruned(mover: Mover, retention: Retention, limit: int) -> int:
    """Prune a page and return how many records went."""
    return (await mover.do(prune, retention, limit)).gone


def most(count: int) -> Retention:
    return Retention(Keep(None, None, None), most=count)


async def test_the_oldest_go_first_and_no_more_than_are_wanted_at_once(mover: Mover) -> None:
    await cancelled(mover, 10)
    retention = Retention(Keep(cancelled=timedelta(seconds=995)))

    counts = [await pruned(mover, retention, 3) for _ in range(3)]

    assert counts == [3, 2, 0]
    assert mover.run("select min(seq), count(*) from windlass_job") == [(6, 5)]
    assert (await mover.stats()).cancelled == 5


async def test_each_queue_has_a_retention_of_its_own(mover: Mover) -> None:
    await cancelled(mover, 5, "a")
    await cancelled(mover, 5, "b")

    gone = await pruned(mover, Retention(Keep(), {"a": Keep(None, None, HOUR)}), 100)
    gone += await pruned(mover, Retention(Keep(), {"b": Keep(None, None, HOUR / 60)}), 100)

    assert gone == 5
    assert mover.run("select queue, count(*) from windlass_job group by 1") == [("a", 5)]


async def test_pruners_at_once_leave_as_many_as_may_stay(mover: Mover) -> None:
    await cancelled(mover, 100)

    gone = await asyncio.gather(*(pruned(mover, most(60), 15) for _ in range(12)))
    while more := await pruned(mover, most(60), 15):
        gone.append(more)

    assert sum(gone) == 40
    assert mover.run("select min(seq), count(*) from windlass_job") == [(41, 60)]
    assert (await mover.stats()).cancelled == 60


async def test_nothing_is_pruned_while_another_one_prunes(mover: Mover) -> None:
    await cancelled(mover, 10)

    with mover.somebody() as connection:
        connection.execute("select pg_advisory_xact_lock(1466524773, 'windlass_job'::regclass::oid::integer)")
        assert await pruned(mover, most(0), 100) == 0

    assert await pruned(mover, most(0), 100) == 10


async def test_a_record_that_somebody_has_locked_does_not_hold_up_the_others(mover: Mover) -> None:
    await cancelled(mover, 10)

    with mover.somebody() as connection:
        connection.execute("select from windlass_job order by seq limit 1 for key share")
        assert await pruned(mover, most(0), 100) == 9

    assert (await mover.stats()).cancelled == 1


async def test_small_records_go_when_they_are_over(mover: Mover) -> None:
    mover.run(OVER_AND_NOT)

    for name in SMALL_RECORDS:
        await mover.do(forget_small, name)
    for name in COUNTS:
        await mover.do(forget_counts, name)

    assert mover.run("select name from windlass_hold order by 1") == [("by its job",), ("held",)]
    assert mover.run("select name from windlass_lock") == [("held",)]
    assert mover.run("select id from windlass_server") == [("silent",)]
    assert mover.run("select count(*) from windlass_count") == [(2,)]


async def test_receipts_go_after_two_minutes_in_batches(mover: Mover) -> None:
    mover.run(RECEIPTS, [timedelta(minutes=2, seconds=1), 2 * AT_ONCE + 1])
    mover.run(RECEIPTS, [timedelta(minutes=1, seconds=50), 7])

    more = [(await mover.do(forget_small, "forget_old_receipts")).more for _ in range(3)]

    assert more == [True, True, False]
    assert mover.run("select count(*) from windlass_receipt") == [(7,)]


async def test_a_paused_queue_without_jobs_is_still_known_after_pruning(mover: Mover) -> None:
    await mover.do(set_queue_settings, SetQueueSettings("nobody", StoredSettings(paused=True)))

    await pruned(mover, Retention(Keep(DAY, DAY, DAY), most=0), 100)

    assert (await mover.stats("nobody")).paused
