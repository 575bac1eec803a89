"""Schedules where every queue has a hash tag of its own: each is kept with the queue of its jobs, and home knows where.

So a schedule and its jobs change in one step. A name at home and a schedule elsewhere are two writes. Whoever wrote one
of them alone, since it was killed or somebody else was faster, is made up for by the next one who looks.
"""

from typing import Final

from windlass.core import commands
from windlass.core.errors import NotAtomicHere
from windlass.core.queries import ListSchedules
from windlass.core.schedule import Fired, FireOutcome, Schedule
from windlass.core.store_calls import table_of
from windlass.stores.redis import keyspace
from windlass.stores.redis.one_queue import refusal
from windlass.stores.redis.queues import Queues


async def write(queues: Queues, command: commands.WriteSchedule) -> int | None:
    """Write a schedule; one that is kept with another queue is not moved, but refused."""
    schedule = command.schedule
    at = await queues.queue_of_schedule(schedule.id)
    if at != schedule.queue and not await _keep_new(queues, schedule, at, command.expected):
        return None
    queue = await queues.taking(schedule.queue)
    revision = await queue.do(command)
    if revision is None or await queues.keep_schedule(schedule.id, schedule.queue) == schedule.queue:
        return revision
    # somebody was faster with another queue
    await queue.do(commands.RemoveSchedule(schedule.id))
    return None


async def _keep_new(queues: Queues, schedule: Schedule, at: str | None, expected: int | None) -> bool:
    """Write down that a schedule is kept with its queue; False when it is there, or somebody was faster.

    Raises `NotAtomicHere` when it is kept with the queue `at` and was read there.
    """
    found = None if at is None else await _kept(queues, schedule.id, at)
    if found is not None and found.revision == expected:
        moving = f"moving schedule {schedule.id!r} from queue {at!r} to {schedule.queue!r}"
        raise NotAtomicHere(moving, "remove it first")
    if found is not None or expected is not None:
        return False
    if at is not None:
        await queues.forget_schedule(schedule.id, at)
    if await queues.keep_schedule(schedule.id, schedule.queue) != schedule.queue:
        return False
    if at is None or await _kept(queues, schedule.id, at) is None:
        return True
    # whoever was about to write it there has done so: there it stays
    await queues.forget_schedule(schedule.id, schedule.queue)
    return False


async def remove(queues: Queues, command: commands.RemoveSchedule) -> bool:
    """Remove a schedule."""
    at = await queues.queue_of_schedule(command.schedule_id)
    if at is None:
        return False
    removed = await (await queues.of(at)).do(command)
    await queues.forget_schedule(command.schedule_id, at)
    return removed


async def fire(queues: Queues, command: commands.FireSchedule) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    firing = command.firing
    at = await queues.queue_of_schedule(firing.schedule_id)
    if at is None:
        return Fired(FireOutcome.LOST)
    refused = refusal(firing.jobs, at)
    if refused is not None:
        # it may be in this queue only since it was read
        found = await _kept(queues, firing.schedule_id, at)
        if found is None or found.revision != firing.revision:
            return Fired(FireOutcome.LOST, None if found is None else found.last_job_id)
        raise refused
    return await (await queues.taking(at)).do(command)


async def _kept(queues: Queues, schedule_id: str, queue: str) -> Schedule | None:
    found = (await keyspace.ask(queues.caller(queue), ListSchedules([schedule_id]))).schedules
    return found[0] if found else None


COMMANDS: Final = table_of(
    commands.WriteSchedule.by_coroutine(write),
    commands.RemoveSchedule.by_coroutine(remove),
    commands.FireSchedule.by_coroutine(fire),
)
