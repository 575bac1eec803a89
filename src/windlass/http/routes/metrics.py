"""The numbers of the store, for Prometheus."""

from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.http.auth import check_roles, check_unlimited, identity_of
from windlass.metrics.exposition import TEXT
from windlass.metrics.of_store import StoreMetrics

METRICS: Final = "/metrics"


class Metrics:
    """An ASGI app, to be mounted behind a guard: whoever may view, and is limited to no queue, is told all numbers."""

    def __init__(self, client: Client) -> None:
        self._metrics = StoreMetrics(client)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell them; without the store those of this process."""
        del receive
        identity = identity_of(scope)
        check_roles(identity, (Role.VIEW,))
        check_unlimited(identity)
        body = await self._metrics.written()
        headers = [(b"content-type", TEXT.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
