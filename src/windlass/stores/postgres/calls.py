"""How the calls of a store reach its database: what one process has open, and moves run through it."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.core.clock import Clock, Rng
from windlass.core.errors import ClientClosed
from windlass.core.topics import Hub
from windlass.stores.postgres.moves.departure import or_moved
from windlass.stores.postgres.moves.receipts import write_receipt, write_receipt_unless_moved
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.room import Room, open_room
from windlass.stores.postgres.work import Changes, Work

T = TypeVar("T")


class Calls:
    """What every call of a store begins with; after a fork the child opens connections of its own at its first call."""

    def __init__(self, options: Options, *, clock: Clock, rng: Rng) -> None:
        """Keep jobs where `options` say; nothing is opened yet."""
        self._options = options
        self._clock = clock
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect, and make the schema when there is none."""
        if self._room is None:
            self._room = await self._open_room()

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    async def _write(self, make: Callable[[Changes], Work[T]]) -> T:
        """Run a move that does no harm when it is repeated."""
        room = await self._here()
        return await room.runner.run(lambda changes: _counted(changes, make))

    async def _write_once(self, make: Callable[[Changes], Work[T]]) -> T:
        """Run a move that must not be done twice; when the reply to its commit was lost, its receipt tells."""
        return await self._once(make, write_receipt)

    async def _begin_once(self, make: Callable[[Changes], Work[T]]) -> T:
        """Run a move that must not be done twice, and not at all in a store that was moved.

        That is looked at last, with the receipt: a call that was done before the store was moved has its answer.
        """
        return await self._once(lambda changes: or_moved(make(changes)), write_receipt_unless_moved)

    async def _once(self, make: Callable[[Changes], Work[T]], end: Callable[[Changes, str, str], Work[None]]) -> T:
        room = await self._here()
        request_id, answers = room.new_request_id(), list[T]()

        def once(changes: Changes) -> Work[T]:
            answer = yield from _counted(changes, make)
            yield from end(changes, request_id, "")
            answers.append(answer)
            return answer

        return await room.runner.run(once, again=lambda: _known(answers))

    async def _look(
        self, make: Callable[[Changes], Work[T]], *, whole: bool = False, timeout: float | None = None
    ) -> T:
        room = await self._here()
        return await room.runner.look(make, whole=whole, timeout=timeout)

    async def _here(self) -> Room:
        """Return what this process has open."""
        return self._there() or await self._reopen()

    def _there(self) -> Room | None:
        """Return what this process has open, if it has: a coroutine less, for calls that many make."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else None

    async def _reopen(self) -> Room:
        """Open connections of our own in a forked process."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = await self._open_room()
        return self._room

    async def _open_room(self) -> Room:
        room = await open_room(self._options, self._clock, self._rng, self._hub)
        if not self._hub.silent:
            room.listener.start()
        return room


def _counted(changes: Changes, make: Callable[[Changes], Work[T]]) -> Work[T]:
    answer = yield from make(changes)
    yield from changes.flush()
    return answer


def _known(answers: Sequence[T]) -> Work[T]:
    """Return the answer of the transaction that was committed: the last one whose receipt was not refused."""
    yield from ()
    return answers[-1]
