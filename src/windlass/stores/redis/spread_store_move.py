"""Commands and queries of `windlass move` where every queue has a hash tag of its own: each is closed by itself."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from windlass.core import commands, queries
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Packed
from windlass.core.store_calls import table_of
from windlass.stores.redis import keyspace
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.one_queue import queue_of_key
from windlass.stores.redis.queues import Queues


async def set_moved(queues: Queues, command: commands.SetMoved) -> None:
    """Let this store take nothing new, or let it take jobs again, one queue after the other; a repeat mends a crash.

    While home says that the jobs go elsewhere no queue comes to be known, so none is left out.
    """
    if command.moved is not None:
        await queues.home.do(command)
    for queue in await _all_queues(queues):
        await keyspace.do(queue, command)
    if command.moved is None:
        await queues.home.do(command)


async def pack(queues: Queues, query: queries.PackJobs) -> Packed:
    """Return waiting jobs of a queue."""
    queue = await queues.known(query.queue)
    packed = Packed((), ()) if queue is None else await queue.ask(query)
    queues.packed = {job.id: query.queue for job in packed.jobs}
    return packed


async def delete_moved(queues: Queues, command: commands.DeleteMoved) -> bool:
    """Delete what another store has now, each queue in a step of its own."""
    move = command.move
    done = True
    if command.jobs:
        done &= await _delete_jobs(queues, move, command.jobs)
    if command.keys:
        # one that came with a job from a store where it held over all queues is kept with that job
        for caller in (queues.home.caller, *await _all_queues(queues)):
            done &= await keyspace.do(caller, commands.DeleteMoved(move, keys=command.keys))
    if command.kv:
        done &= await queues.home.do(commands.DeleteMoved(move, kv=command.kv))
    for schedule_id in command.schedules:
        done &= await _delete_schedule(queues, move, schedule_id)
    return done


async def _delete_jobs(queues: Queues, move: str | None, jobs: Sequence[JobId]) -> bool:
    places = {job_id: queues.packed[job_id] for job_id in jobs if job_id in queues.packed}
    if others := [job_id for job_id in jobs if job_id not in places]:
        places |= await queues.places_of(others)
    parts: defaultdict[str, list[JobId]] = defaultdict(list)
    for job_id, queue in places.items():
        parts[queue].append(job_id)
    done = [
        await keyspace.do(queues.caller(queue), commands.DeleteMoved(move, jobs=ids)) for queue, ids in parts.items()
    ]
    return all(done)


async def _delete_schedule(queues: Queues, move: str | None, schedule_id: str) -> bool:
    at = await queues.queue_of_schedule(schedule_id)
    if at is None:
        return True
    if not await keyspace.do(queues.caller(at), commands.DeleteMoved(move, schedules=[schedule_id])):
        return False
    await queues.forget_schedule(schedule_id, at)
    return True


async def timed_keys(queues: Queues, query: queries.ListTimedKeys) -> list[HeldKey]:
    """Return keys that time alone frees, of one queue after the other."""
    found: list[HeldKey] = []
    for caller in (queues.home.caller, *await _all_queues(queues)):
        if len(found) < query.limit:
            keys = await keyspace.ask(caller, replace(query, limit=query.limit - len(found)))
            found += keys
    return found


async def take_keys(queues: Queues, command: commands.TakeKeys) -> None:
    """Let keys be held here until their time is over, those over several queues too, which nobody asks for."""
    parts: defaultdict[str | None, list[HeldKey]] = defaultdict(list)
    for key in command.keys:
        parts[queue_of_key(key.name)].append(key)
    # home is asked in any case: it says whether the store takes anything
    await queues.home.do(commands.TakeKeys(parts.pop(None, [])))
    for queue, keys in parts.items():
        if queue is not None:
            await (await queues.of(queue)).do(commands.TakeKeys(keys))


async def _all_queues(queues: Queues) -> list[Caller]:
    return [queues.caller(name) for name in await queues.names()]


COMMANDS: Final = table_of(
    commands.SetMoved.by_coroutine(set_moved),
    commands.DeleteMoved.by_coroutine(delete_moved),
    commands.TakeKeys.by_coroutine(take_keys),
)
QUERIES: Final = table_of(
    queries.PackJobs.by_coroutine(pack),
    queries.ListTimedKeys.by_coroutine(timed_keys),
)
