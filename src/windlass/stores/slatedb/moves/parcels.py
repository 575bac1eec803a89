"""Jobs that go to another store, or come from one."""

from heapq import merge
from itertools import islice
from typing import Final

from windlass.core.commands import DeleteMoved, SetMoved, TakeKeys, UnpackJobs
from windlass.core.moving import Packed, Unpacked
from windlass.core.queries import PackJobs
from windlass.core.states import State
from windlass.core.topics import PAUSES
from windlass.kit.moves import moving
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import is_damaged, log
from windlass.stores.slatedb.moves.claim import line_heads
from windlass.stores.slatedb.parcel_looks import read_unpacked
from windlass.stores.slatedb.queues import Queue
from windlass.stores.slatedb.table import Table

WINDOW: Final = 1_000


async def set_moved(table: Table, command: SetMoved) -> None:
    """Let the store take nothing new from now on, or with None let it take jobs again."""
    table.moved = moved = command.moved
    table.put(keys.MOVED, None if moved is None else records.encode(moved))
    table.news.add(PAUSES)


async def pack(table: Table, query: PackJobs) -> Packed:
    """Return waiting jobs of a queue, with their keys, in the order of their enqueue; damaged ones stay.

    They are the oldest of those that stand first: of a window, since no index has all that wait in that order. In the
    lines that is the order of claims, so of two jobs that are as urgent the older one always goes first.
    """
    queue = table.queues.get(query.queue)
    if queue is None:
        return Packed([], [])
    window = max(query.limit, WINDOW)
    while True:
        places = await _window(table, queue, window)
        sound = await _oldest(table, places, query.limit)
        if sound or len(places) < window:
            return moving.pack(table.holds, sound, table.now)
        # all of them are damaged: they stay, and are in the way of no other
        window *= 2


async def _window(table: Table, queue: Queue, window: int) -> list[bytes]:
    """Return the places of up to `window` jobs in the lines of a queue, and of as many that are scheduled."""
    heads = await line_heads(table, queue, list(queue.lines), window)
    places = [place for _, place in islice(merge(*heads), window)]
    if queue.standing[State.SCHEDULED]:
        places += (await table.front(keys.due(queue.name), window)).first(window)
    return places


async def _oldest(table: Table, places: list[bytes], limit: int) -> list[Record]:
    """Return the jobs at these places that were enqueued first, but for damaged ones."""
    left = sorted(places, key=keys.turn_of)
    sound: list[Record] = []
    while left and len(sound) < limit:
        count = limit - len(sound)
        for record in await table.records(left[:count]):
            if record.damage is None:
                sound.append(record)
            else:
                log.log("a move leaves a job where it is: %s", str(is_damaged(record)))
        del left[:count]
    return sound


async def unpack(table: Table, command: UnpackJobs) -> bool:
    """Enqueue the jobs of a parcel unchanged, if it is the next one of its move and queue."""
    parcel = command.parcel
    key = keys.parcel(parcel.move, parcel.queue)
    value = await table.value(key)
    if not moving.is_next(parcel, read_unpacked(value)):
        return False
    ids = [job.id for job in parcel.packed.jobs]
    await table.find(ids)
    await table.read_holders(held.name for held in parcel.packed.keys)
    moving.unpack(table, parcel.packed, table.now)
    table.put(key, records.encode(Unpacked(parcel.number, ids)))
    return True


async def delete_moved(table: Table, command: DeleteMoved) -> bool:
    """Delete what another store has now."""
    if not moving.goes_by(table.moved, command.move):
        return False
    await table.find(command.jobs)
    await table.read_holders(command.keys)
    for job_id in command.jobs:
        moving.let_go(table, job_id)
    for name in command.keys:
        table.holds.let_go(name)
    table.put_values(dict.fromkeys(command.kv))
    for schedule_id in command.schedules:
        table.schedules.remove(schedule_id)
    return True


async def take_keys(table: Table, command: TakeKeys) -> None:
    """Let these keys be held here until their time is over, those that are free."""
    await table.read_holders(key.name for key in command.keys)
    for key in command.keys:
        table.holds.take_over(key, table.now)
