"""The process of a dashboard: a store that is looked at, and the port of its pages, from a start to a stop."""

from typing import Final, Self

from windlass.client.client import Client
from windlass.http.dashboard.app import Dashboard
from windlass.http.front_door import DoorOptions, FrontDoor

GRACE: Final = 2.0
"""Seconds that a stop gives to what is under way: a change that somebody has just made."""


class Showing:
    """Shows the store of a client, which its maker opens and closes; runs no services, and never works a queue.

    A stop ends every stream at once.
    """

    def __init__(self, client: Client, options: DoorOptions, *, store: str) -> None:
        """Be ready to start; `store` is what the store is called. Raises `InvalidValue` for what is not safe."""
        door = self._door = FrontDoor(options, clock=client.clock)
        self._dashboard = Dashboard(client, auth=door.auth, hosts=door.hosts, sessions=door.sessions, store=store)
        self._listening = door.listening(self._dashboard, self._dashboard.stop_waiting)

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return self._door.clickable(self._listening.port)

    async def __aenter__(self) -> Self:
        """Open the port; raises `OSError` when it is taken."""
        await self._listening.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listening.stop(GRACE)
        await self._dashboard.close()
