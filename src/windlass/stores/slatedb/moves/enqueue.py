"""Enqueue, and the schedules that do it."""

from collections.abc import Sequence

from windlass.core.commands import EnqueueJobs, FireSchedule, RemoveSchedule, WriteSchedule
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.queries import ListDueSchedules
from windlass.core.schedule import DueSchedules, Fired
from windlass.kit.moves import enqueuing
from windlass.kit.moves.holds import Holder
from windlass.stores.slatedb.table import Table


async def enqueue(table: Table, command: EnqueueJobs) -> list[Enqueued]:
    """Enqueue jobs, all or none; raises a `JobConflict` before anything is written."""
    await find_for_enqueue(table, command.jobs)
    return enqueuing.enqueue(table, command.jobs, table.now)


async def find_for_enqueue(table: Table, jobs: Sequence[PreparedJob]) -> None:
    """Read what an enqueue looks at: the ids, the unique keys, and the jobs that hold them."""
    await table.find(job.id for job in jobs)
    names = [job.unique.name for job in jobs if job.unique is not None]
    if names:
        await table.read_holders(names)
        holders = {name: holder for name in names if (holder := table.holds.holder(name, table.now)) is not None}
        await table.find(holder.job_id for holder in holders.values())
        for name, holder in holders.items():
            _free_if_damaged(table, name, holder)


def _free_if_damaged(table: Table, name: str, holder: Holder) -> None:
    """Free a key that a job holds which no worker can run: its record may not even say that it holds the key."""
    record = table.jobs.get(holder.job_id)
    if record is not None and record.damage is None:
        return
    if record is not None and record.state.waiting:
        table.set_aside(record)
    if holder.ends_at is None and (record is None or record.state.finished):
        table.holds.let_go(name)


async def write_schedule(table: Table, command: WriteSchedule) -> int | None:
    """Write a schedule if its revision is as expected."""
    return table.schedules.write(command.schedule, command.expected)


async def remove_schedule(table: Table, command: RemoveSchedule) -> bool:
    """Remove a schedule."""
    return table.schedules.remove(command.schedule_id)


async def due_schedules(table: Table, query: ListDueSchedules) -> DueSchedules:
    """Return schedules that are due."""
    return table.schedules.due(frozenset(query.declared), query.limit, table.now)


async def fire(table: Table, command: FireSchedule) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    firing = command.firing
    schedules = table.schedules.chosen([firing.schedule_id])
    last = [each.last_job_id for each in schedules if each.last_job_id is not None and each.overlap == "skip"]
    await table.find(last, parts=())
    for record in map(table.jobs.get, last):
        if record is not None and record.damage is not None and record.state.waiting:
            # no worker would ever end it
            table.set_aside(record)
    await find_for_enqueue(table, firing.jobs)
    return table.schedules.fire(firing, table.now)
