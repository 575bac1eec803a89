"""How the reader of a stream waits."""

import asyncio

from windlass.core.clock import Clock


class Wakes:
    """Lets one reader wait for what is new, on its event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken = asyncio.Event()
        self._ended = False

    def wake(self) -> None:
        """Let the reader look."""
        self._woken.set()

    def end(self) -> None:
        """Let the reader end."""
        self._ended = True
        self._woken.set()

    async def woken(self, silence: float) -> bool:
        """Return when the reader is woken, or after `silence` seconds; False at the end."""
        timer = self._clock.call_later(silence, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()
        return not self._ended
