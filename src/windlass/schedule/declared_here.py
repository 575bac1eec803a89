"""The schedules that the app of a server declares."""

from collections.abc import Collection, Sequence
from datetime import datetime

from windlass.client.client import Client
from windlass.engine.served import Around
from windlass.schedule.declared import Declared
from windlass.schedule.declaring import Declaring
from windlass.schedule.upholding import Upholding


class DeclaredHere:
    """Writes what an app declares and keeps it so; what the store has taken counts."""

    def __init__(self, client: Client, declared: Sequence[Declared], around: Around) -> None:
        """Begin with all of them to be written into the store of `client`."""
        clock = around.clock
        self._declaring = Declaring(client, declared, clock=clock, rng=around.rng)
        self._upholding = Upholding(client.store, around.server_id, dead_after=around.config.dead_after, clock=clock)

    @property
    def ids(self) -> Collection[str]:
        """Those that are written."""
        return self._declaring.written

    @property
    def again_at(self) -> float | None:
        """When to try again to write the others."""
        return self._declaring.again_at

    def since(self, schedule_id: str) -> datetime | None:  # noqa: ARG002 - they are all alike
        """Return None: they count from the start of their server on, as its watch does."""
        return None

    async def look(self) -> None:
        """Write what is left to be written, if it is time to."""
        await self._declaring.attempt()

    async def uphold(self) -> None:
        """Look, if it is time to, whether they are still as they are declared here."""
        await self._upholding.attempt(self._declaring.written)
