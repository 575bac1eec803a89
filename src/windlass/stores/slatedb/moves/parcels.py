"""Jobs that go to another store, or come from one."""

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.core.states import State
from windlass.core.topics import PAUSES
from windlass.kit.moves import moving
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.moves.claim import line_heads
from windlass.stores.slatedb.table import Table

WINDOW: Final = 1_000


class LetGoCall(NamedTuple):
    """What another store has now, by which move."""

    move: str | None
    jobs: Sequence[JobId]
    keys: Sequence[str]
    kv: Sequence[bytes]
    schedules: Sequence[str]


class PackCall(NamedTuple):
    """A queue, and how many of its jobs to pack at most."""

    queue: str
    limit: int


async def set_moved(table: Table, moved: Moved | None) -> None:
    """Let the store take nothing new from now on, or with None let it take jobs again."""
    table.moved = moved
    table.put(keys.MOVED, None if moved is None else records.encode(moved))
    table.news.add(PAUSES)


async def pack(table: Table, call: PackCall) -> Packed:
    """Return waiting jobs of a queue, with their keys, in the order of their enqueue.

    They are the oldest of those that stand first: of a window, since no index has all that wait in that order. In the
    lines that is the order of claims, so of two jobs that are as urgent the older one always goes first.
    """
    queue = table.queues.get(call.queue)
    if queue is None:
        return Packed([], [])
    window = max(call.limit, WINDOW)
    lines = await line_heads(table, queue, list(queue.lines), window)
    places = list(islice(merge(*lines), window))
    if queue.standing[State.SCHEDULED]:
        places += (await table.front(keys.due(queue.name), window)).first(window)
    oldest = sorted(map(keys.turn_of, places))[: call.limit]
    found = await table.records(oldest)
    # whoever moves a store is to know what it cannot take along
    table.damaged.refuse(map(keys.id_of, oldest))
    table.damaged.refuse(table.aside([*(keys.line(queue.name, kind) for kind in queue.lines), keys.due(queue.name)]))
    return moving.pack(table.holds, found, table.now)


async def unpack(table: Table, parcel: Parcel) -> bool:
    """Put the jobs of a parcel in line as they are, if it is the next one of its move and queue."""
    moving.refuse(table.moved)
    key = keys.parcel(parcel.move, parcel.queue)
    value = await table.value(key)
    if not moving.is_next(parcel, None if value is None else records.unpacked(value)):
        return False
    ids = [job.id for job in parcel.packed.jobs]
    await table.read(ids)
    await table.read_holders(held.name for held in parcel.packed.keys)
    moving.unpack(table, parcel.packed, table.now)
    table.put(key, records.encode(Unpacked(parcel.number, ids)))
    return True


async def let_go(table: Table, call: LetGoCall) -> bool:
    """Forget what another store has now."""
    if not moving.goes_by(table.moved, call.move):
        return False
    await table.read(call.jobs)
    await table.read_holders(call.keys)
    for job_id in call.jobs:
        moving.let_go(table, job_id)
    for name in call.keys:
        table.holds.let_go(name)
    table.put_values(dict.fromkeys(call.kv))
    for schedule_id in call.schedules:
        table.schedules.remove(schedule_id)
    return True


async def take_keys(table: Table, held: Sequence[HeldKey]) -> None:
    """Let these keys be held here until their time is over, those that are free."""
    moving.refuse(table.moved)
    await table.read_holders(key.name for key in held)
    for key in held:
        table.holds.take_over(key, table.now)
