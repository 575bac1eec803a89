"""A dashboard without buttons, on a free port of the loopback."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.http.auth import Identity
from windlass.http.dashboard.app import Dashboard
from windlass.http.listening import Listening

HOST: Final = "127.0.0.1"


class Onlookers:
    """Lets everybody look, and nobody change anything."""

    _ONLOOKER: Final = Identity("looking only", frozenset({Role.VIEW}))

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Know everybody as one who looks."""
        del headers
        return self._ONLOOKER


@asynccontextmanager
async def look_only(client: Client) -> AsyncGenerator[str]:
    """Serve it for the time of a block; give its address. Raises `OSError` where there is no port."""
    dashboard = Dashboard(client, auth=Onlookers(), store="the store of the demo")
    listening = Listening(dashboard, HOST, 0, stopping=dashboard.stop_waiting)
    try:
        await listening.start()
        yield f"http://{HOST}:{listening.port}/"
    finally:
        await listening.stop(grace=0.5)
        await dashboard.close()
