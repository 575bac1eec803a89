"""Jobs on their way into what is served, or out of it."""

from collections.abc import Sequence

from windlass.api import operations
from windlass.api.calls import MOST_JOBS, Nothing
from windlass.api.moving import (
    LetGoAsked,
    PackAsked,
    SetMovedAsked,
    TakeKeysAsked,
    TimedKeysAsked,
    UnpackedAsked,
    key_of,
    key_told,
    moved_of,
    moved_told,
    packed_of,
    parcel_asked,
    unpacked_of,
)
from windlass.api.shape import blob
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.stores.http.calls import Calls, pages


class Moving:
    """The moving of one store, in one process; see `core.moving` for what each method promises."""

    def __init__(self, calls: Calls) -> None:
        """Ask through `calls`."""
        self._calls = calls

    async def moved(self) -> Moved | None:
        """Return where the jobs go or went."""
        return moved_of((await self._calls.look(operations.MOVED, Nothing())).moved)

    async def set_moved(self, moved: Moved | None) -> None:
        """Let what is served take nothing new, or take jobs again."""
        await self._calls.change(operations.SET_MOVED, SetMovedAsked(moved=moved_told(moved)))

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs, as many as one reply has room for."""
        if limit < 1:
            return Packed([], [])
        wanted = PackAsked(queue=queue, limit=min(limit, MOST_JOBS))
        return packed_of(await self._calls.look(operations.PACK, wanted))

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line; one that is too large for one call is refused whole.

        A repeat after a lost reply is known by the number of the parcel, also after a restart of what serves.
        """
        return (await self._calls.change(operations.UNPACK, parcel_asked(parcel))).unpacked

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel that was unpacked."""
        return unpacked_of(await self._calls.look(operations.UNPACKED, UnpackedAsked(move=move, queue=queue)))

    async def let_go(
        self,
        *,
        move: str | None,
        jobs: Sequence[JobId],
        keys: Sequence[str],
        kv: Sequence[bytes],
        schedules: Sequence[str],
    ) -> bool:
        """Forget what another store has now; so many that they need several calls go in several steps."""
        done = True
        longest = max(map(len, (jobs, keys, kv, schedules)))
        for begin in range(0, longest, MOST_JOBS):
            some = slice(begin, begin + MOST_JOBS)
            wanted = LetGoAsked(
                move=move,
                jobs=list(jobs[some]),
                keys=list(keys[some]),
                kv=[blob(key) for key in kv[some]],
                schedules=list(schedules[some]),
            )
            done &= (await self._calls.change(operations.LET_GO, wanted)).let_go
        return done

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that only time frees, as many as one call tells."""
        if limit < 1:
            return []
        told = await self._calls.look(operations.TIMED_KEYS, TimedKeysAsked(limit=min(limit, MOST_JOBS)))
        return [key_of(one) for one in told.keys]

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held, those that are free."""
        for page in pages(keys, MOST_JOBS):
            await self._calls.change(operations.TAKE_KEYS, TakeKeysAsked(keys=[key_told(key) for key in page]))
