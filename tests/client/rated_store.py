"""Store that gives no claim before a time, and names it."""

from datetime import timedelta

from windlass.core.requests import Claimed, ClaimRequest
from windlass.stores.memory.store import MemoryStore
from windlass.testing import FakeClock, SeededRng


class RatedStore(MemoryStore):
    """Counts the claims that were given nothing before `opens_at`, by a clock of its own if a test gives it one."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock, rng=SeededRng())
        self.own_clock = clock
        self.opens_at = clock.now()
        self.refused = 0

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        if self.own_clock.now() < self.opens_at:
            self.refused += 1
            return Claimed([], self.opens_at)
        return await super().claim(request, request_id=request_id)

    def open_in(self, seconds: float) -> None:
        """Give nothing for a while."""
        self.opens_at = self.own_clock.now() + timedelta(seconds=seconds)
