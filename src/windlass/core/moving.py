"""Records of `windlass move`, which takes the waiting jobs of one store to another.

The source is marked first, by `SetMoved`. From then on it takes nothing new, and what waits there stays unchanged:
`enqueue`, also inside a caller's transaction, `claim` and every command with `begins_work` raise `StoreMoved`. What is
running goes on to its end there: settlements with their `then` and `kv`, renewals, notes, rescue, promotion, deletes,
prune, locks, servers, audit and every query work as before.

The waiting jobs of a queue go over in parcels, one after the other:

    SRC.pack(queue) -> DST.unpack(parcel) -> SRC.let_go(jobs)

`unpack` writes, in the same atomic step as the jobs, the number of the parcel and the ids in it. After a crash the next
mover reads `unpacked` first, deletes those jobs, and packs the next parcel. Until then they are in both stores, and the
source gives none of them: the mark must stand until the last parcel was deleted. A parcel that is not the next one is
refused, so a mover that slept while another one went on cannot unpack anything twice.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import Job


class Moved(NamedTuple):
    """Where the jobs of a store go: `to` is a URL without secrets, `move` names the move, the same until it is done."""

    to: str
    move: str


class HeldKey(NamedTuple):
    """A unique key that is held: as `Hold` and the store's own record of its holder."""

    name: str
    """Tells holders apart over scopes and tenants, as in `Hold`."""
    job_id: JobId
    until: Literal["claimed", "finished", "time"]
    expires_at: datetime | None
    """When time alone frees it."""
    digest: bytes


class Packed(NamedTuple):
    """Waiting jobs, with history and log, in the order of their enqueue, and the keys that they hold."""

    jobs: Sequence[Job]
    keys: Sequence[HeldKey]


class Parcel(NamedTuple):
    """Jobs of one queue on their way; `number` counts from 1 within a move and a queue."""

    move: str
    queue: str
    number: int
    packed: Packed


class Unpacked(NamedTuple):
    """The last parcel of a move and a queue that was unpacked here, and the jobs that were in it."""

    number: int
    ids: Sequence[JobId]
