"""An app with an eye on its attempts: for jobs that run in place, and for tests."""

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from windlass.client.client import Client
from windlass.core.failpoint import reach
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.states import State
from windlass.engine import causes
from windlass.engine.attempt import Attempt
from windlass.engine.config import ServerConfig
from windlass.engine.context import Context, running
from windlass.engine.served import Around, Middleware, Next, OnDead, OnStateChange, Served, TenantScope
from windlass.engine.service import Service
from windlass.handlers.registered import Registered, RunsIn

P = ParamSpec("P")
R = TypeVar("R")

AFTER_CLAIM: Final = "attempt.after_claim"
BEFORE_HANDLER: Final = "attempt.before_handler"
BEFORE_SETTLE: Final = "attempt.before_settle"
AFTER_SETTLE: Final = "attempt.after_settle"


class Abandoned(BaseException):
    """Raised at one of the points above: the attempt goes no further, as if its process were gone."""


class Observed:
    """The app, as a server sees it; what its attempts are ended by is kept, and they reach the points above.

    All of its handlers run in this process: a child process would not know of the store that a test has put it on.
    """

    def __init__(self, app: Served, client: Client | None = None) -> None:
        """Stand for `app`; a `client` is used in place of the app's own."""
        self._app = app
        self._client = client
        self._ended: set[JobId] = set()
        self._gone: set[JobId] = set()
        self.active: set[Context] = set()
        """The attempts whose code runs."""
        self.begun = 0
        """How many attempts have begun."""

    def forget(self) -> None:
        """Let go of what attempts were ended by."""
        for job in self._ended:
            causes.forget(job)
        self._ended.clear()

    @property
    def name(self) -> str:
        """How the server is called among others."""
        return self._app.name

    @property
    def client(self) -> Client:
        """The client, which is open while the server runs."""
        return self._app.client if self._client is None else self._client

    @property
    def handlers(self) -> Mapping[str, Registered]:
        """The handlers by kind, each under its aliases too."""
        return {kind: here(registered) for kind, registered in self._app.handlers.items()}

    @property
    def consumers(self) -> Mapping[str, Registered]:
        """The consumers by queue."""
        return {queue: here(registered) for queue, registered in self._app.consumers.items()}

    @property
    def queues(self) -> Collection[str]:
        """Every queue that the app knows of."""
        return self._app.queues

    @property
    def schedules(self) -> Collection[str]:
        """The ids of the schedules that the app declares."""
        return self._app.schedules

    def services(self, around: Around) -> Sequence[Service]:
        """Return what else runs with a server of this app."""
        return self._app.services(around)

    @property
    def middlewares(self) -> Sequence[Middleware]:
        """What wraps every attempt, the outermost first."""
        return (self._around_all, *self._app.middlewares, self._around_the_handler)

    @property
    def tenant_scope(self) -> TenantScope | None:
        """What wraps the attempts of jobs that have a tenant."""
        return self._app.tenant_scope

    @property
    def state_change_hooks(self) -> Sequence[OnStateChange]:
        """Called after the commit of every move that the server makes."""
        return (self._settled, *[self._unless_gone(hook) for hook in self._app.state_change_hooks])

    @property
    def dead_hooks(self) -> Sequence[OnDead]:
        """Called after a job was written as dead."""
        return [self._unless_gone(hook) for hook in self._app.dead_hooks]

    def server_config(self, given: ServerConfig) -> ServerConfig:
        """Return what was given in code: what comes from outside has no say here."""
        return given

    async def close(self) -> None:
        """Let go of the client."""
        await self._app.close()

    def open_lifespan(self) -> AbstractAsyncContextManager[Mapping[type, Any]]:
        """Open what handlers need, once per process; gives what there is, by type."""
        return self._app.open_lifespan()

    async def _around_all(self, context: Context, call_next: Next) -> object:
        self.begun += 1
        self.active.add(context)
        job = context.job.id
        try:
            _reach(AFTER_CLAIM)
            try:
                result = await call_next()
            except (Abandoned, asyncio.CancelledError):
                causes.forget(job)
                raise
            except BaseException as error:
                self._ended.add(job)
                causes.keep(job, error)
                _reach(BEFORE_SETTLE)
                raise
            causes.forget(job)
            _reach(BEFORE_SETTLE)
            return result
        finally:
            self.active.discard(context)

    async def _around_the_handler(self, _: Context, call_next: Next) -> object:
        _reach(BEFORE_HANDLER)
        return await call_next()

    def _settled(self, job: Job, _old: State, _new: State) -> None:
        self._gone.discard(job.id)
        try:
            reach(AFTER_SETTLE)
        except Abandoned:
            self._gone.add(job.id)

    def _unless_gone(self, hook: Callable[Concatenate[Job, P], R]) -> Callable[Concatenate[Job, P], R | None]:
        """Return a hook that a process which is gone does not call."""

        def call(job: Job, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
            return None if job.id in self._gone else hook(job, *args, **kwargs)

        return call


def here(registered: Registered) -> Registered:
    """Return a handler that runs in this process, wherever it runs otherwise."""
    if registered.runs_in is not RunsIn.PROCESS:
        return registered
    function = registered.function
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    return replace(registered, runs_in=RunsIn.LOOP if is_async else RunsIn.THREAD)


def _reach(point: str) -> None:
    try:
        reach(point)
    except Abandoned:
        attempt = running.get()
        if isinstance(attempt, Attempt):
            # what is settled already is neither written nor renewed
            attempt.settled = True
        raise
