"""Schedules where every queue has a hash tag of its own: each is kept with the queue of its jobs, and home knows where.

So a schedule and its jobs change in one step. A name at home and a schedule elsewhere are two writes. Whoever wrote one
of them alone, since it was killed or somebody else was faster, is made up for by the next one who looks.
"""

from windlass.core.errors import NotAtomicHere
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.stores.redis.one_queue import refusal
from windlass.stores.redis.queues import Queues


class SpreadSchedules:
    """See `Moves`: what changes a schedule."""

    def __init__(self, queues: Queues) -> None:
        """Work on `queues`."""
        self._queues = queues

    async def write(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule; one that is kept with another queue is not moved, but refused."""
        await self._queues.refuse_if_moved()
        at = await self._queues.queue_of_schedule(schedule.id)
        if at != schedule.queue and not await self._keep_new(schedule, at, expected):
            return None
        part = await self._queues.taking(schedule.queue)
        revision = await part.moves.write_schedule(schedule, expected=expected)
        if revision is None or await self._queues.keep_schedule(schedule.id, schedule.queue) == schedule.queue:
            return revision
        # somebody was faster with another queue
        await part.moves.remove_schedule(schedule.id)
        return None

    async def _keep_new(self, schedule: Schedule, at: str | None, expected: int | None) -> bool:
        """Write down that a schedule is kept with its queue; False when it is there, or somebody was faster.

        Raises `NotAtomicHere` when it is kept with the queue `at` and was read there.
        """
        found = None if at is None else await self._kept(schedule.id, at)
        if found is not None and found.revision == expected:
            moving = f"moving schedule {schedule.id!r} from queue {at!r} to {schedule.queue!r}"
            raise NotAtomicHere(moving, "remove it first")
        if found is not None or expected is not None:
            return False
        if at is not None:
            await self._queues.forget_schedule(schedule.id, at)
        if await self._queues.keep_schedule(schedule.id, schedule.queue) != schedule.queue:
            return False
        if at is None or await self._kept(schedule.id, at) is None:
            return True
        # whoever was about to write it there has done so: there it stays
        await self._queues.forget_schedule(schedule.id, schedule.queue)
        return False

    async def remove(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        await self._queues.refuse_if_moved()
        at = await self._queues.queue_of_schedule(schedule_id)
        if at is None:
            return False
        removed = await (await self._queues.of(at)).moves.remove_schedule(schedule_id)
        await self._queues.forget_schedule(schedule_id, at)
        return removed

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        await self._queues.refuse_if_moved()
        at = await self._queues.queue_of_schedule(firing.schedule_id)
        if at is None:
            return Fired(FireOutcome.LOST)
        refused = refusal(firing.jobs, at)
        if refused is not None:
            # it may be in this queue only since it was read
            found = await self._kept(firing.schedule_id, at)
            if found is None or found.revision != firing.revision:
                return Fired(FireOutcome.LOST, None if found is None else found.last_job_id)
            raise refused
        return await (await self._queues.taking(at)).moves.fire(firing)

    async def _kept(self, schedule_id: str, queue: str) -> Schedule | None:
        found = (await self._queues.looks(queue).schedules([schedule_id])).schedules
        return found[0] if found else None
