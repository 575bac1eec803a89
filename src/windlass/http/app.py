"""The ASGI app that serves a client: the operations of `/api/v1`, behind the guard."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.api.operations import OPERATIONS, SERVING
from windlass.client.client import Client
from windlass.core.errors import WindlassError
from windlass.http.auth import Auth, RefuseAll
from windlass.http.body import LARGEST_BODY
from windlass.http.endpoint import Endpoint
from windlass.http.entrance import entrance
from windlass.http.guard import Guard, GuardSettings
from windlass.http.health import LIVE, READY, Live, Ready
from windlass.http.login import SESSION, Login, Logout
from windlass.http.openapi import OPENAPI, Document
from windlass.http.refusal import Refusal
from windlass.http.reply import Reply
from windlass.http.request_headers import Hosts
from windlass.http.routes.log import LogEndpoint
from windlass.http.routes.metrics import METRICS, Metrics
from windlass.http.routes.news import NewsEndpoint
from windlass.http.routes.table import HANDLED
from windlass.http.routing import OnlyRoute, StraightRouter
from windlass.http.services import ServingServices
from windlass.http.sessions import Sessions
from windlass.http.shared import Shared

AnyEndpoint: TypeAlias = Endpoint[Any, Any] | NewsEndpoint | LogEndpoint
Way: TypeAlias = tuple[str, str, str, ASGIApp]
"""A method, a path, a name, and who answers there."""
_PLACES: Final = {operation.name: place for place, operation in enumerate(OPERATIONS)}


class Pages(Protocol):
    """What people see, beside the operations."""

    @property
    def ways(self) -> Sequence[Way]:
        """Where the pages are; they change nothing."""
        ...

    @property
    def public(self) -> Collection[str]:
        """Paths that need no token."""
        ...

    def refused(self, scope: Scope, error: Refusal | WindlassError) -> Reply:
        """Return how a request is told that it is refused."""
        ...


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
        pages: Callable[[Shared, Auth], Pages] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Serve `client` to those whom `auth` knows, which is nobody without it.

        `hosts` are the names that it may be called by, those of the loopback unless it is said. `sessions` lets
        browsers log in. `services` are those that this process runs. `pages` are for people, beside the operations.
        `headers` are what every reply has beside what protects a browser.
        """
        known = auth or RefuseAll()
        self.shared: Final = Shared(client, services)
        self.router: Final = StraightRouter(self._lifespan)
        shown = None if pages is None else pages(self.shared, known)
        settings = GuardSettings(
            auth=known,
            hosts=hosts or Hosts(),
            probes=(LIVE, READY),
            public=(SESSION,),
            headers={**(headers or {}), SERVING: self.shared.id},
            largest_body=largest_body,
        )
        if shown is not None:
            settings = replace(settings, public=(SESSION, *shown.public), refused=shown.refused)
        self._guard: Final = Guard(self.router, settings, clock=client.clock)
        self.router.lead(self._routes(known, sessions, () if shown is None else shown.ways))

    @property
    def id(self) -> str:
        """The name of this serving process, which each reply tells."""
        return self.shared.id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)

    def stop_waiting(self) -> None:
        """Let every wait and every stream end now; to be called before connections are waited for."""
        self.shared.stop_waiting()

    async def close(self) -> None:
        """Stop, and return when nothing of the app runs any more."""
        await self.shared.close()

    def _routes(self, auth: Auth, sessions: Sessions | None, pages: Sequence[Way]) -> list[OnlyRoute]:
        shared = self.shared
        endpoints: list[AnyEndpoint] = [Endpoint(shared, each) for each in HANDLED]
        endpoints += [NewsEndpoint(shared, auth), LogEndpoint(shared, auth)]
        ready = Ready(shared, auth)
        ways: list[Way] = [
            *map(_way, sorted(endpoints, key=lambda endpoint: _PLACES[endpoint.operation.name])),
            ("GET", LIVE, "live", Live()),
            ("HEAD", LIVE, "live_head", Live()),
            ("GET", READY, "ready", ready),
            ("HEAD", READY, "ready_head", ready),
            ("GET", OPENAPI, "openapi", Document()),
            ("GET", METRICS, "metrics", Metrics(shared.client)),
            ("POST", SESSION, "login", Login(auth, sessions, self._guard.wrong_tokens, shared.client.clock)),
            ("DELETE", SESSION, "logout", Logout(sessions)),
            *pages,
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


def _way(endpoint: AnyEndpoint) -> Way:
    operation = endpoint.operation
    return operation.method, operation.path.replace("{id}", "{id:uuid}"), operation.name, endpoint


def make_app(
    client: Client,
    *,
    auth: Auth | None = None,
    tokens: str | Path | None = None,
    https: bool = True,
    insecure: bool = False,
    allowed_hosts: Iterable[str] = (),
    largest_body: int = LARGEST_BODY,
) -> Api:
    """Return an ASGI app with the API of `client`, to be mounted in a web application; it runs no services.

    It lets in whom `auth` knows, or who has a token of the file `tokens`; with `insecure=True` everybody, and without
    any of them nobody. `allowed_hosts` are the names that it is called by, beside those of the loopback. The cookies of
    logins are for `https` alone, unless that is False.
    """
    door = entrance(
        auth=auth,
        tokens=tokens,
        https=https,
        insecure=insecure,
        allowed_hosts=allowed_hosts,
        clock=client.clock,
    )
    return Api(client, auth=door.auth, sessions=door.sessions, hosts=door.hosts, largest_body=largest_body)
