"""Jobs that go to another store, and those that come from one; see `core.moving.Moving`."""

import asyncio
from collections.abc import Sequence
from typing import Final

from windlass.core.clock import Clock, Rng
from windlass.core.errors import StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.kit.moves import moving
from windlass.stores.postgres.calls import Calls
from windlass.stores.postgres.moves import departure, holds, pack, unpack
from windlass.stores.postgres.moves.departure import Beginner
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.work import Changes, Work

LOOK_FOR_BEGINNERS: Final = 0.02
LEAST: Final = 0.5
"""Seconds for a last look who blocks, so that it can be told."""
_SHOWN: Final = 3


class PostgresMoving(Calls):
    """The part of the store that `windlass move` works through."""

    def __init__(self, options: Options, *, clock: Clock, rng: Rng) -> None:
        """Keep jobs where `options` say; nothing is opened yet."""
        super().__init__(options, clock=clock, rng=rng)
        self._packed_from: dict[str, int] = {}

    async def moved(self) -> Moved | None:
        """Return where the jobs of this store go or went."""
        return await self._look(lambda _: departure.moved())

    async def set_moved(self, moved: Moved | None) -> None:
        """Let this store take nothing new, or again; returns when no call that began before is under way.

        When these do not end before the deadline, `StoreUnavailable` says whose they are: the store is marked then, and
        the call can be repeated.
        """
        deadline = asyncio.get_running_loop().time() + self._options.timeout
        await self._write(lambda changes: departure.set_moved(changes, moved))
        if moved is not None:
            await self._all_know(deadline)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs of a queue; no more than fit in some memory."""
        near = self._packed_from.get(queue)
        packed = await self._look(lambda changes: pack.pack(changes, queue, near=near, limit=limit), whole=True)
        if packed.jobs:
            # those may be let go next: what comes behind them is looked for from there
            self._packed_from[queue] = packed.jobs[0].seq
        return packed

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line as they are."""
        moving.check(parcel)
        return await self._begin_once(lambda changes: unpack.unpack(changes, parcel))

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel that was unpacked here."""
        return await self._look(lambda _: unpack.unpacked(move, queue))

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Forget what another store has now."""
        return await self._write(
            lambda changes: pack.let_go(changes, move=move, jobs=jobs, keys=keys, kv=kv, schedules=schedules)
        )

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that only time frees."""
        return await self._look(lambda changes: holds.timed(changes, limit))

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held here, those that are free."""
        await self._begin_once(lambda changes: _take_keys(changes, keys))

    async def _all_know(self, deadline: float) -> None:
        """Wait for the end of every transaction that may not have seen the mark."""
        first = left = await self._beginners(deadline)
        while left:
            if asyncio.get_running_loop().time() > deadline:
                raise StoreUnavailable(_who_blocks(left), retryable=True)
            await asyncio.sleep(LOOK_FOR_BEGINNERS)
            left = departure.still_under_way(first, await self._beginners(deadline))

    async def _beginners(self, deadline: float) -> list[Beginner]:
        left = deadline - asyncio.get_running_loop().time()
        return await self._look(lambda _: departure.beginners(), timeout=max(left, LEAST))


def _take_keys(changes: Changes, keys: Sequence[HeldKey]) -> Work[None]:
    yield from holds.take_over(changes, keys)


def _who_blocks(left: Sequence[Beginner]) -> str:
    return (
        "the store takes nothing new from now on, but transactions that began before are still open: "
        f"{', '.join(map(str, left[:_SHOWN]))}; let them end, or end them with pg_terminate_backend, and try again"
    )
