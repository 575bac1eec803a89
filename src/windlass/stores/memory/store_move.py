"""Commands and queries of `windlass move`: parcels of jobs are packed, unpacked in their order, and deleted."""

from itertools import islice

from windlass.core.commands import DeleteMoved, SetMoved, TakeKeys, UnpackJobs
from windlass.core.moving import HeldKey, Moved, Packed, Unpacked
from windlass.core.queries import GetMoved, GetUnpacked, ListTimedKeys, PackJobs
from windlass.core.topics import PAUSES
from windlass.kit.moves import moving
from windlass.stores.memory.atomic_step import MemoryState


def moved(state: MemoryState, query: GetMoved) -> Moved | None:
    """Return where the jobs of this store go or went."""
    del query
    return state.house.moved


def set_moved(state: MemoryState, command: SetMoved) -> None:
    """Let the store take nothing new, or take jobs again."""
    state.house.moved = command.moved
    state.table.news.add(PAUSES)


def pack(state: MemoryState, query: PackJobs) -> Packed:
    """Return the first waiting jobs of a queue, in the order of their enqueue."""
    waiting = (record for record in state.table.after(None) if record.queue == query.queue and record.state.waiting)
    return moving.pack(state.table.holds, islice(waiting, query.limit), state.now)


def unpack(state: MemoryState, command: UnpackJobs) -> bool:
    """Enqueue the jobs of a parcel, if it is the next one of its move and queue."""
    parcel = command.parcel
    key = parcel.move, parcel.queue
    if not moving.is_next(parcel, state.house.parcels.get(key)):
        return False
    moving.unpack(state.table, parcel.packed, state.now)
    state.house.parcels[key] = Unpacked(parcel.number, [job.id for job in parcel.packed.jobs])
    return True


def unpacked(state: MemoryState, query: GetUnpacked) -> Unpacked | None:
    """Return the last parcel of a move and a queue that was unpacked here."""
    return state.house.parcels.get((query.move, query.queue))


def let_go(state: MemoryState, command: DeleteMoved) -> bool:
    """Delete waiting jobs, unique keys by their names, values and schedules."""
    if not moving.goes_by(state.house.moved, command.move):
        return False
    for job_id in command.jobs:
        moving.let_go(state.table, job_id)
    for name in command.keys:
        state.table.holds.let_go(name)
    state.table.put_values(dict.fromkeys(command.kv))
    for schedule_id in command.schedules:
        state.schedules.remove(schedule_id)
    return True


def timed_keys(state: MemoryState, query: ListTimedKeys) -> list[HeldKey]:
    """Return keys that only time frees."""
    return list(islice(state.table.holds.timed(state.now), query.limit))


def take_keys(state: MemoryState, command: TakeKeys) -> None:
    """Let these keys be held here until their time is over, those that are free."""
    for key in command.keys:
        state.table.holds.take_over(key, state.now)
