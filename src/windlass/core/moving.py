"""The seam that `windlass move` takes jobs from one store to another by.

A store that is left is marked first, by `set_moved`. From then on it takes nothing new, and what waits there stays as
it is: `enqueue`, also inside a caller's transaction, `claim`, `cancel`, `retry`, `reschedule`, `set_paused`,
`write_schedule`, `remove_schedule`, `fire`, `kv_write`, `unpack` and `take_keys` raise `StoreMoved`. What is running
goes on to its end there: `settle`, with its `then` and `kv`, `renew`, `note`, `rescue`, `promote`, `delete`, `prune`,
locks, servers, audit and every look work as before.

The waiting jobs of a queue go over in parcels, one after the other:

    SRC.pack(queue) -> DST.unpack(parcel) -> SRC.let_go(jobs)

`unpack` writes, in the same atomic step as the jobs, which parcel that was and what was in it. So whoever goes on after
a crash asks `unpacked` first, lets go of those jobs, and packs the next parcel. Until then they are in both stores, and
the one that is left gives none of them: the mark must stand until the last parcel was let go. A parcel that is not the
next one is refused, so a mover that slept while another one went on cannot unpack anything twice.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

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


class Moving(Protocol):
    """What a store does to let its jobs go, and to take in those of another one."""

    async def moved(self) -> Moved | None:
        """Return where the jobs of this store go or went; None while it takes jobs."""
        ...

    async def set_moved(self, moved: Moved | None) -> None:
        """Let this store take nothing new from now on, or with None let it take jobs again. Rings `PAUSES`.

        When it returns, no call that did not know of it is still under way: what `pack` does not give from now on is
        running or was never enqueued.
        """
        ...

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return up to `limit` pending and scheduled jobs of `queue`, also of a paused one; they stay until let go."""
        ...

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line as they are: with id, state, times, attempts, deliveries, history and log.

        Each gets a new sequence number, in their order; a job that is due is ready at once. One whose id is here
        already is passed by; one whose key is held here comes without it. They count as enqueued. False, and nothing
        is done, unless this is parcel `unpacked(move, queue).number + 1`, or the first. Raises `InvalidValue` for jobs
        that do not wait, or are of another queue.
        """
        ...

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel of a move and a queue that was unpacked here."""
        ...

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Forget what another store has now, without a trace but in the counts of waiting jobs; `keys` by their names.

        A job goes with its history, its log and the key that it holds, and only while it waits: one that is running
        stays. With `move` it is done only while the jobs of this store go by that move, else False is returned: whoever
        slept since, and finds the jobs back here, must not take them.
        """
        ...

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return up to `limit` keys that only time frees and whose time is not over, whoever holds them."""
        ...

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let these keys be held here until their time is over, those that are free."""
        ...
