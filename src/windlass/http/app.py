"""The ASGI app that serves a client: the operations of `/api/v1`, behind the guard."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windlass.api.operations import OPERATIONS, SERVING
from windlass.client.client import Client
from windlass.http.auth import Auth, NoAuth, RefuseAll
from windlass.http.body import LARGEST_BODY
from windlass.http.endpoint import Endpoint
from windlass.http.guard import Guard, GuardSettings
from windlass.http.health import LIVE, READY, Live, Ready
from windlass.http.hosts import Hosts
from windlass.http.login import SESSION, Login, Logout
from windlass.http.openapi import OPENAPI, Document
from windlass.http.routes.log import LogEndpoint
from windlass.http.routes.metrics import METRICS, Metrics
from windlass.http.routes.news import NewsEndpoint
from windlass.http.routes.table import HANDLED
from windlass.http.routing import OnlyRoute, no_route
from windlass.http.services import ServingServices
from windlass.http.sessions import Sessions
from windlass.http.shared import Shared

logger = logging.getLogger("windlass.http")

AnyEndpoint: TypeAlias = Endpoint[Any, Any] | NewsEndpoint | LogEndpoint
_PLACES: Final = {operation.name: place for place, operation in enumerate(OPERATIONS)}


class Api:
    """An ASGI app, to be run by itself or to be mounted below a path of another one.

    It opens its client at the first call, or at its start where it is told of that, and never closes it.
    """

    def __init__(
        self,
        client: Client,
        *,
        auth: Auth | None = None,
        hosts: Hosts | None = None,
        sessions: Sessions | None = None,
        services: ServingServices | None = None,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        """Serve `client` to those whom `auth` knows, which is nobody without it.

        `hosts` are the names that it may be called by, those of the loopback unless it is said. `sessions` lets
        browsers log in. `services` are those that this process runs.
        """
        known = auth or RefuseAll()
        self.shared: Final = Shared(client, services)
        self.router: Final = Router(redirect_slashes=False, default=no_route, lifespan=self._lifespan)
        settings = GuardSettings(
            auth=known, hosts=hosts or Hosts(), probes=(LIVE, READY), public=(SESSION,), largest_body=largest_body
        )
        self._guard: Final = Guard(self.router, settings, clock=client.clock)
        self.router.routes.extend(self._routes(known, sessions))
        self._name = (SERVING.encode(), self.shared.id.encode())

    @property
    def id(self) -> str:
        """The name of this serving process, which each reply tells."""
        return self.shared.id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append(self._name)
            await send(message)

        await self._guard(scope, receive, send_named)

    def stop_waiting(self) -> None:
        """Let every wait and every stream end now; to be called before connections are waited for."""
        self.shared.stop_waiting()

    async def close(self) -> None:
        """Stop, and return when nothing of the app runs any more."""
        await self.shared.close()

    def _routes(self, auth: Auth, sessions: Sessions | None) -> list[OnlyRoute]:
        shared = self.shared
        endpoints: list[AnyEndpoint] = [Endpoint(shared, each) for each in HANDLED]
        endpoints += [NewsEndpoint(shared, auth), LogEndpoint(shared, auth)]
        ready = Ready(shared, auth)
        ways: list[tuple[str, str, str, ASGIApp]] = [
            *map(_way, sorted(endpoints, key=lambda endpoint: _PLACES[endpoint.operation.name])),
            ("GET", LIVE, "live", Live()),
            ("HEAD", LIVE, "live_head", Live()),
            ("GET", READY, "ready", ready),
            ("HEAD", READY, "ready_head", ready),
            ("GET", OPENAPI, "openapi", Document()),
            ("GET", METRICS, "metrics", Metrics(shared.client)),
            ("POST", SESSION, "login", Login(auth, sessions, self._guard.wrong_tokens, shared.client.clock)),
            ("DELETE", SESSION, "logout", Logout(sessions)),
        ]
        allowed: dict[str, str] = {}
        for method, path, _, _ in ways:
            allowed[path] = f"{allowed[path]}, {method}" if path in allowed else method
        return [OnlyRoute(path, app, name=name, method=method, allowed=allowed) for method, path, name, app in ways]

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncGenerator[None]:
        await self.shared.open()
        try:
            yield
        finally:
            await self.close()


def _way(endpoint: AnyEndpoint) -> tuple[str, str, str, ASGIApp]:
    operation = endpoint.operation
    return operation.method, operation.path.replace("{id}", "{id:uuid}"), operation.name, endpoint


def make_app(
    client: Client,
    *,
    auth: Auth | None = None,
    insecure: bool = False,
    sessions: Sessions | None = None,
    hosts: Hosts | None = None,
    largest_body: int = LARGEST_BODY,
) -> Api:
    """Return an ASGI app that serves `client`; without `auth` it refuses everybody, unless `insecure` lets all in."""
    if auth is None and insecure:
        logger.warning("this app lets everybody do everything: give it `auth`, and leave `insecure` away")
        auth = NoAuth()
    return Api(client, auth=auth, sessions=sessions, hosts=hosts, largest_body=largest_body)
