"""Jobs come and go where every queue has a hash tag of its own: each queue is closed and opened by itself."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.stores.redis.moving import Moving
from windlass.stores.redis.one_queue import queue_of_key
from windlass.stores.redis.queues import Queues


class SpreadMoving:
    """See `Moving`: a parcel is of one queue, and is unpacked there in one step."""

    def __init__(self, queues: Queues) -> None:
        """Work on `queues`."""
        self._queues = queues
        self._packed: dict[JobId, str] = {}
        """The queues of the jobs that were packed last: an id does not tell, and every queue would be asked."""

    async def moved(self) -> Moved | None:
        """Return where the jobs go; home says so before the first queue does, and until the last one does not."""
        return await self._queues.home.moving.moved()

    async def everywhere(self) -> bool:
        """Whether all queues are closed, or all are open, as home says: whoever was killed may have left some out."""
        home, *parts = await asyncio.gather(*[part.moved() for part in (self._queues.home.moving, *await self._all())])
        return all(part == home for part in parts)

    async def set_moved(self, moved: Moved | None) -> None:
        """Let nothing new begin, or let it begin again, one queue after the other; a repetition makes up for a crash.

        While home says that the jobs go elsewhere no queue comes to be known, so none is left out.
        """
        if moved is not None:
            await self._queues.home.moving.set_moved(moved)
        for part in await self._all():
            await part.set_moved(moved)
        if moved is None:
            await self._queues.home.moving.set_moved(None)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs of a queue."""
        part = await self._queues.known(queue)
        packed = Packed((), ()) if part is None else await part.moving.pack(queue, limit=limit)
        self._packed = {job.id: queue for job in packed.jobs}
        return packed

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line, if it is the next one."""
        return await (await self._queues.taking(parcel.queue)).moving.unpack(parcel)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel of a move and a queue."""
        return await self._queues.moving(queue).unpacked(move, queue)

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Forget what another store has now, each queue in a step of its own."""
        done = True
        if jobs:
            done &= await self._let_go_of_jobs(move, jobs)
        if keys:
            # one that came with a job from a store where it held over all queues is kept with that job
            for part in (self._queues.home.moving, *await self._all()):
                done &= await part.let_go(move=move, keys=keys)
        if kv:
            done &= await self._queues.home.moving.let_go(move=move, kv=kv)
        for schedule_id in schedules:
            done &= await self._let_go_of_schedule(move, schedule_id)
        return done

    async def _let_go_of_jobs(self, move: str | None, jobs: Sequence[JobId]) -> bool:
        parts: defaultdict[str, list[JobId]] = defaultdict(list)
        places = {job_id: self._packed[job_id] for job_id in jobs if job_id in self._packed}
        if others := [job_id for job_id in jobs if job_id not in places]:
            places |= await self._queues.places_of(others)
        for job_id, queue in places.items():
            parts[queue].append(job_id)
        done = [await self._queues.moving(queue).let_go(move=move, jobs=ids) for queue, ids in parts.items()]
        return all(done)

    async def _let_go_of_schedule(self, move: str | None, schedule_id: str) -> bool:
        at = await self._queues.queue_of_schedule(schedule_id)
        if at is None:
            return True
        if not await self._queues.moving(at).let_go(move=move, schedules=[schedule_id]):
            return False
        await self._queues.forget_schedule(schedule_id, at)
        return True

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that time alone frees, of one queue after the other."""
        found: list[HeldKey] = []
        for part in (self._queues.home.moving, *await self._all()):
            if len(found) < limit:
                found += await part.timed_keys(limit=limit - len(found))
        return found

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held here until their time is over, those over several queues too, which nobody asks for."""
        parts: defaultdict[str | None, list[HeldKey]] = defaultdict(list)
        for key in keys:
            parts[queue_of_key(key.name)].append(key)
        # home is asked in any case: it says whether the store takes anything
        await self._queues.home.moving.take_keys(parts.pop(None, []))
        for queue, some in parts.items():
            if queue is not None:
                await (await self._queues.of(queue)).moving.take_keys(some)

    async def _all(self) -> list[Moving]:
        return [self._queues.moving(name) for name in await self._queues.names()]
