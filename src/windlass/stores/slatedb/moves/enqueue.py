"""Enqueue, and the schedules that do it."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.schedule import DueSchedules, Fired, Firing, Schedule
from windlass.kit.moves import enqueuing, moving
from windlass.stores.slatedb.moves.receipts import receipt, write_receipt
from windlass.stores.slatedb.records import Receipt
from windlass.stores.slatedb.table import Table


class EnqueueCall(NamedTuple):
    """One caller's jobs."""

    jobs: Sequence[PreparedJob]
    request_id: str | None = None


class ScheduleWrite(NamedTuple):
    """A schedule, and the revision that it must have now."""

    schedule: Schedule
    expected: int | None


async def enqueue(table: Table, call: EnqueueCall) -> list[Enqueued]:
    """Put jobs in line, all or none; raises `UniqueConflict` before anything is written."""
    if (before := (await receipt(table, call.request_id)).enqueued) is not None:
        return before
    moving.refuse(table.moved)
    await read_for_enqueue(table, call.jobs)
    done = enqueuing.enqueue(table, call.jobs, table.now)
    write_receipt(table, call.request_id, Receipt(enqueued=done))
    return done


async def read_for_enqueue(table: Table, jobs: Sequence[PreparedJob]) -> None:
    """Read what an enqueue looks at; raises `StoreCorrupt` when a job of it is damaged."""
    await find_for_enqueue(table, jobs)
    if table.damaged:
        refuse_damaged(table, jobs)


async def find_for_enqueue(table: Table, jobs: Sequence[PreparedJob]) -> None:
    """Read what an enqueue looks at: the ids, the unique keys, and the jobs that hold them."""
    await table.find(job.id for job in jobs)
    names = [job.unique.name for job in jobs if job.unique is not None]
    if names:
        await table.read_holders(names)
        await table.find(_holders(table, jobs))


def refuse_damaged(table: Table, jobs: Sequence[PreparedJob]) -> None:
    """Raise `StoreCorrupt` when one of these jobs, which were read, or one that holds a key of theirs is damaged."""
    table.damaged.refuse([*(job.id for job in jobs), *_holders(table, jobs)])


def _holders(table: Table, jobs: Sequence[PreparedJob]) -> list[JobId]:
    found = [table.holds.holder(job.unique.name, table.now) for job in jobs if job.unique is not None]
    return [holder.job_id for holder in found if holder is not None]


async def write_schedule(table: Table, write: ScheduleWrite) -> int | None:
    """Write a schedule if its revision is as expected."""
    moving.refuse(table.moved)
    return table.schedules.write(write.schedule, write.expected)


async def remove_schedule(table: Table, schedule_id: str) -> bool:
    """Remove a schedule."""
    moving.refuse(table.moved)
    return table.schedules.remove(schedule_id)


class DueCall(NamedTuple):
    """Which schedules a scheduler looks after, and how many it takes."""

    declared: frozenset[str]
    limit: int


async def due_schedules(table: Table, call: DueCall) -> DueSchedules:
    """Return schedules that are due."""
    return table.schedules.due(call.declared, call.limit, table.now)


async def fire(table: Table, firing: Firing) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    moving.refuse(table.moved)
    schedules = table.schedules.chosen([firing.schedule_id])
    last = [each.last_job_id for each in schedules if each.last_job_id is not None and each.overlap == "skip"]
    await table.find(last, parts=())
    # nobody will ever know whether a damaged one has ended: the schedule goes on without it
    table.overlook(job_id for job_id in last if job_id in table.damaged)
    await read_for_enqueue(table, firing.jobs)
    return table.schedules.fire(firing, table.now)
