"""Parcels of jobs: packed, unpacked in their turn, and let go."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from windlass.core.ids import JobId
from windlass.core.moving import Packed, Parcel, Unpacked
from windlass.kit.moves import moving
from windlass.stores.memory.house import House
from windlass.stores.memory.table import Table


def pack(table: Table, queue: str, limit: int, now: datetime) -> Packed:
    """Return the first waiting jobs of a queue, in the order of their enqueue."""
    waiting = (record for record in table.after(None) if record.queue == queue and record.state.waiting)
    return moving.pack(table.holds, islice(waiting, limit), now)


def unpack(table: Table, house: House, parcel: Parcel, now: datetime) -> bool:
    """Put the jobs of a parcel in line, if it is the next one of its move and queue."""
    of = parcel.move, parcel.queue
    if not moving.is_next(parcel, house.parcels.get(of)):
        return False
    moving.unpack(table, parcel.packed, now)
    house.parcels[of] = Unpacked(parcel.number, [job.id for job in parcel.packed.jobs])
    return True


def let_go(table: Table, jobs: Sequence[JobId], keys: Sequence[str], kv: Sequence[bytes]) -> None:
    """Forget jobs that wait, unique keys by their names, and values."""
    for job_id in jobs:
        moving.let_go(table, job_id)
    for name in keys:
        table.holds.let_go(name)
    table.put_values(dict.fromkeys(kv))
