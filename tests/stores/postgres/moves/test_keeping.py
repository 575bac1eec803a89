"""What is kept beside jobs, with many who want the same at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.stores.postgres.moves.moving import Mover
from windlass.core.commands import FireSchedule, FreeLock, TakeLock, WriteAudit, WriteHeartbeat, WriteKv, WriteSchedule
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.queries import GetKv, ListAudit, ListDueSchedules, ListServers
from windlass.core.requests import KvWrite
from windlass.core.schedule import FireOutcome, Firing
from windlass.core.topics import lock_topic
from windlass.stores.postgres import queries, schedule_queries
from windlass.stores.postgres.moves.keep import free_lock, take_lock, write_audit, write_heartbeat, write_kv_if
from windlass.stores.postgres.moves.schedules import fire, write
from windlass.testing.conformance.given import HOUR, MINUTE, a_job, a_schedule

AT_ONCE = 20
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("expected", [None, b"old"])
async def test_of_many_who_expect_the_same_value_one_writes(mover: Mover, expected: bytes | None) -> None:
    if expected is not None:
        await mover.do(write_kv_if, WriteKv(KvWrite(b"k", expected)))

    writes = [WriteKv(KvWrite(b"k", b"%d" % n, expected)) for n in range(AT_ONCE)]
    done = await asyncio.gather(*(mover.do(write_kv_if, write) for write in writes))

    assert done.count(True) == 1
    assert await mover.look(queries.get_kv, GetKv([b"k", b"none", b"k"])) == [
        value := b"%d" % done.index(True),
        None,
        value,
    ]


async def test_of_many_who_want_a_lock_one_has_it_and_may_renew_it(mover: Mover) -> None:
    taken = await asyncio.gather(*(mover.do(take_lock, TakeLock("l", str(n), MINUTE)) for n in range(AT_ONCE)))
    holder = str(taken.index(True))

    assert taken.count(True) == 1
    assert await mover.do(take_lock, TakeLock("l", holder, HOUR))
    assert not await mover.do(free_lock, FreeLock("l", "other"))
    assert await mover.do(free_lock, FreeLock("l", holder))
    assert lock_topic("l") in mover.told


async def test_a_lock_that_is_over_is_anybodys(mover: Mover) -> None:
    assert await mover.do(take_lock, TakeLock("l", "a", timedelta(0)))
    assert await mover.do(take_lock, TakeLock("l", "b", timedelta(0)))
    assert not await mover.do(free_lock, FreeLock("l", "b"))


async def test_a_server_is_known_by_the_time_of_the_database(mover: Mover) -> None:
    server = ServerRecord("id", "web", "host", 1, "1.0", LONG_AGO, LONG_AGO, ("default",), details={"k": "v"})

    await mover.do(write_heartbeat, WriteHeartbeat(server))
    [first] = await mover.look(queries.servers, ListServers())
    await mover.do(write_heartbeat, WriteHeartbeat(server))
    [second] = await mover.look(queries.servers, ListServers())

    assert first.started_at == first.seen_at > LONG_AGO
    assert (second.started_at, second.seen_at > first.seen_at) == (first.started_at, True)
    assert (second.name, second.queues, second.details) == ("web", ("default",), {"k": "v"})


async def test_audit_entries_come_back_newest_first_whatever_is_in_them(mover: Mover) -> None:
    entries = [AuditEntry(LONG_AGO, f"a\0{n}", "retry", "\ud800", {"k\0": "v\0"}) for n in range(3)]

    await mover.do(write_audit, WriteAudit(entries))

    newest, *_ = await mover.look(queries.audit, ListAudit(2))
    assert newest == AuditEntry(LONG_AGO, "a\\02", "retry", "\\ud800", {"k\0": "v\0"})


async def test_of_many_who_fire_a_schedule_one_does(mover: Mover) -> None:
    revision = await mover.do(write, WriteSchedule(a_schedule(next_run_at=LONG_AGO), None))
    assert revision is not None
    firings = [Firing("nightly", revision, [a_job()], LONG_AGO, LONG_AGO + HOUR) for _ in range(AT_ONCE)]

    fired = await asyncio.gather(*(mover.do(fire, FireSchedule(one)) for one in firings))

    done = [one for one in fired if one.outcome is FireOutcome.DONE]
    assert (len(done), mover.run("select count(*) from windlass_job")) == (1, [(1,)])
    due = await mover.do(schedule_queries.due_schedules, ListDueSchedules([], 10))
    assert [(each.id, each.last_job_id) for each in due.due] == [("nightly", done[0].job_id)]
    assert due.now > LONG_AGO


async def test_of_many_who_write_a_schedule_of_one_revision_one_does(mover: Mover) -> None:
    written = await asyncio.gather(*(mover.do(write, WriteSchedule(a_schedule(), None)) for _ in range(AT_ONCE)))
    [revision] = [each for each in written if each is not None]

    again = await asyncio.gather(*(mover.do(write, WriteSchedule(a_schedule(), revision)) for _ in range(AT_ONCE)))

    [newer] = [each for each in again if each is not None]
    assert newer > revision


async def test_the_next_time_is_told_of_what_is_not_among_the_due(mover: Mover) -> None:
    times = [LONG_AGO + n * HOUR for n in range(3)] + [datetime(2999, 1, 1, tzinfo=UTC)]
    for n, at in enumerate(times):
        await mover.do(write, WriteSchedule(a_schedule(f"s{n}", at, declared=n % 2 == 1), None))

    looked = [
        await mover.do(schedule_queries.due_schedules, ListDueSchedules(declared, limit))
        for declared, limit in (([], 10), (["s1", "s3"], 10), (["s1", "s3"], 2), (["s1"], 3), (["unknown"], 0))
    ]

    assert [([each.id for each in one.due], one.next_run_at) for one in looked] == [
        (["s0", "s2"], None),
        (["s0", "s1", "s2"], times[3]),
        (["s0", "s1"], times[2]),
        (["s0", "s1", "s2"], None),
        ([], times[0]),
    ]
