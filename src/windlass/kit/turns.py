"""Turns at something that only a few may have at once."""

import asyncio
from collections import deque


class Turns:
    """As many turns as there are, given out in the order of asking; belongs to one event loop.

    As asyncio's own semaphore, but a turn that is free is taken without a coroutine, and one that is given back goes
    to whoever waits longest and to nobody else.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        """Begin with `count` free ones."""
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_free(self) -> bool:
        """Take a turn if one is free; who waits comes first, since then none is."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def wait(self, deadline: float) -> None:
        """Take the next turn that is given back; `TimeoutError` at `deadline`, by the clock of the running loop."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(deadline):
                await turn
        except BaseException:
            # one that cannot be called off was ours just before we left
            if not turn.cancel() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        """Give a turn back."""
        while self._waiting:
            turn = self._waiting.popleft()
            # one whose waiter is leaving is passed over
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
