"""What a server needs of an app; `windlass.App` is one."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from windlass.client.client import Client
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.job import Job
from windlass.core.states import State
from windlass.engine.config import ServerConfig
from windlass.engine.context import Context
from windlass.engine.service import Service
from windlass.handlers.registered import Registered

Next: TypeAlias = Callable[[], Awaitable[Any]]
"""The rest of an attempt: the next middleware, or the handler itself."""
Middleware: TypeAlias = Callable[[Context, Next], Awaitable[Any]]
"""Wraps an attempt: `await call_next()` runs the rest and returns the handler's value."""
OnStateChange: TypeAlias = Callable[[Job, State, State], Awaitable[None] | None]
OnDead: TypeAlias = Callable[[Job], Awaitable[None] | None]


class TenantScope(Protocol):
    """Opens what belongs to one tenant around an attempt; raises `TenantNotFound` for one that it does not know."""

    def __call__(self, tenant: str) -> AbstractAsyncContextManager[Any]:
        """Return the scope of `tenant`."""
        ...


class Around(NamedTuple):
    """What a server gives to a service of the app: its settings, and what every service is made with."""

    config: ServerConfig
    clock: Clock
    rng: Rng
    spawn: Spawn
    client: Client
    """The client that the server works with, open."""
    server_id: str


class Served(Protocol):
    """An app, as a server sees it."""

    @property
    def name(self) -> str:
        """How the server is called among others."""
        ...

    @property
    def client(self) -> Client:
        """The client, which is open while the server runs."""
        ...

    @property
    def handlers(self) -> Mapping[str, Registered]:
        """The handlers by kind, each under its aliases too."""
        ...

    @property
    def consumers(self) -> Mapping[str, Registered]:
        """The consumers by queue."""
        ...

    @property
    def queues(self) -> Collection[str]:
        """Every queue that the app knows of."""
        ...

    @property
    def schedules(self) -> Collection[str]:
        """The ids of the schedules that the app declares."""
        ...

    def services(self, around: Around) -> Sequence[Service]:
        """Return what else runs with a server of this app, from its start to its stop."""
        ...

    @property
    def middlewares(self) -> Sequence[Middleware]:
        """What wraps every attempt, the outermost first."""
        ...

    @property
    def tenant_scope(self) -> TenantScope | None:
        """What wraps the attempts of jobs that have a tenant."""
        ...

    @property
    def state_change_hooks(self) -> Sequence[OnStateChange]:
        """Called after the commit of every move that the server makes."""
        ...

    @property
    def dead_hooks(self) -> Sequence[OnDead]:
        """Called after a job was written as dead."""
        ...

    def server_config(self, given: ServerConfig) -> ServerConfig:
        """Return the settings of a server that was `given` some in code: what comes from outside goes over them."""
        ...

    async def close(self) -> None:
        """Let go of the client."""
        ...

    def open_lifespan(self) -> AbstractAsyncContextManager[Mapping[type, Any]]:
        """Open what handlers need, once per process; gives what there is, by type."""
        ...
