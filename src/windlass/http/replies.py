"""Replies that are kept for a while, so that a call whose reply was lost can be repeated."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

from windlass.core.clock import Clock
from windlass.http.refusal import Refusal
from windlass.http.reply import UNAVAILABLE, Reply

KEPT_FOR: Final = 600.0
MOST_REPLIES: Final = 10_000
MOST_BYTES: Final = 32 * 1024 * 1024

Name: TypeAlias = tuple[str, str]
"""Who asks, and how the request is called."""


@dataclass(slots=True)
class _Kept:
    mark: bytes
    """Of what was asked: the same name for something else is a mistake."""
    at: float
    reply: Reply | None = None
    """None while it is under way, and again when there was no room for it."""
    done: "asyncio.Future[Reply] | None" = None

    @property
    def size(self) -> int:
        return 0 if self.reply is None else len(self.reply.body)


class Replies:
    """The replies of one process to the last requests, each kept for ten minutes, in bounded memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[Name, _Kept] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """How many bytes of replies are kept."""
        return self._size

    async def once(
        self, name: Name, asked: tuple[str, bytes], work: Callable[[], Awaitable[Reply]], *, first_elsewhere: bool
    ) -> Reply:
        """Return the reply to a request: the kept one, the one that is on its way, or that of doing it now.

        `asked` is the operation and its body. A repeat of what was `first_elsewhere`, sent to another process, is
        refused when it is not known here: nobody can tell whether it was done.
        """
        self._forget_old()
        mark = _mark(*asked)
        kept = self._kept.get(name)
        if kept is not None:
            return await _again(kept, mark, name[1])
        if first_elsewhere:
            raise outcome_unknown(name[1], "was sent to another process first, which may have done it")
        return await self._first(name, _Kept(mark, self._clock.monotonic()), work)

    async def _first(self, name: Name, kept: _Kept, work: Callable[[], Awaitable[Reply]]) -> Reply:
        kept.done = asyncio.get_running_loop().create_future()
        self._kept[name] = kept
        try:
            reply = await work()
        except BaseException:
            # nobody can tell how far it came: the name stays, without a reply
            kept.done.cancel()
            kept.done = None
            raise
        kept.done.set_result(reply)
        kept.done = None
        if reply.status == UNAVAILABLE:
            # the store promises that nothing was done, so that a repeat may try again
            self._kept.pop(name, None)
        else:
            self._keep(name, kept, reply)
        return reply

    def _keep(self, name: Name, kept: _Kept, reply: Reply) -> None:
        kept.reply, kept.at = reply, self._clock.monotonic()
        self._size += kept.size
        self._kept.move_to_end(name)
        self._make_room()

    def _forget_old(self) -> None:
        oldest = self._clock.monotonic() - KEPT_FOR
        while self._kept:
            name, kept = next(iter(self._kept.items()))
            if kept.at > oldest or kept.done is not None:
                return
            self._forget(name)

    def _make_room(self) -> None:
        while len(self._kept) > MOST_REPLIES:
            self._forget(next(iter(self._kept)))
        if self._size <= MOST_BYTES:
            return
        for kept in self._kept.values():
            self._size -= kept.size
            kept.reply = None
            if self._size <= MOST_BYTES:
                return

    def _forget(self, name: Name) -> None:
        self._size -= self._kept.pop(name).size


async def _again(kept: _Kept, mark: bytes, request: str) -> Reply:
    if kept.mark != mark:
        raise another_call()
    if kept.reply is not None:
        return kept.reply
    if (done := kept.done) is not None:
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.cancelled():
                raise
    raise outcome_unknown(request, "was done before, and its reply is no longer kept")


def another_call() -> Refusal:
    """Refuse a call with the name of another one."""
    message = "another call had this Windlass-Request before: give each call a name of its own"
    return Refusal(422, "invalid_value", message)


def outcome_unknown(request: str, why: str) -> Refusal:
    """Refuse a repeat that could be done twice."""
    message = f"request {request[:100]!r} {why}: look whether it was done, then ask again under another name"
    return Refusal(409, "outcome_unknown", message)


def _mark(operation: str, body: bytes) -> bytes:
    return blake2b(body, digest_size=16, person=operation.encode()[:16]).digest()
