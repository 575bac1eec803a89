"""The service that declares schedules on a store whose schedules somebody else fires."""

import logging
from collections.abc import Sequence

from windlass.client.client import Client
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced
from windlass.engine.served import Around
from windlass.engine.service import Service, trace_of
from windlass.schedule.declared import Declared
from windlass.schedule.declared_here import DeclaredHere
from windlass.schedule.upholding import EVERY

logger = logging.getLogger("windlass")


class Declarer(Service):
    """Writes the schedules that an app declares and keeps them so: for a server that only works."""

    name = "declarer"
    interval = ZERO

    def __init__(self, client: Client, declared: Sequence[Declared], around: Around) -> None:
        """Declare in the store of `client`."""
        super().__init__(clock=around.clock, rng=around.rng, spawn=around.spawn)
        self._declared = DeclaredHere(client, declared, around)

    async def start(self) -> None:
        """Begin the loop; if the store answers, what is declared is written by then.

        Raises `Fenced`, and nothing has begun then.
        """
        if not self.running:
            try:
                await self._declared.look()
            except Fenced:
                raise
            except Exception as error:
                text = "%s could not write at its start; it goes on: %s"
                logger.error(text, self.name, error, exc_info=trace_of(error))  # noqa: TRY400
        await super().start()

    async def tick(self) -> None:
        """Write what is left, see to the rest, and sleep until there may be more to do."""
        await self._declared.look()
        await self._declared.uphold()
        await self._clock.sleep(self._pause_until(self._declared.again_at))

    def _pause_until(self, again_at: float | None) -> float:
        return EVERY if again_at is None else min(EVERY, max(0.0, again_at - self._clock.monotonic()))
