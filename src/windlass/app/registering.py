"""What an app makes of functions: handlers, consumers, schedules and lifespans."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from windlass.app.checks import checked_aliases, checked_retry, checked_timeout
from windlass.app.consumer import Consumer
from windlass.app.handler import AsyncHandler, Handler, SyncHandler
from windlass.app.home import Home
from windlass.app.job_decorator import JobDecorator, JobOptions
from windlass.app.lifespans import Lifespan, Lifespans
from windlass.app.registry import Registry
from windlass.app.runs_in import is_async, runs_in
from windlass.app.sources import NOTHING
from windlass.app.surroundings import Surroundings
from windlass.core.duration import Duration
from windlass.core.errors import UnknownKind
from windlass.core.job import NewJob
from windlass.core.names import check_max_attempts, check_name, check_priority
from windlass.core.retry import RetryRule
from windlass.core.schedule import CatchUp, Overlap
from windlass.core.settings import UNSET, Unset
from windlass.engine.context import Context, wants_context
from windlass.engine.served import Around
from windlass.engine.service import Service
from windlass.handlers.arguments import JsonArguments
from windlass.handlers.job_argument import JobArgument
from windlass.handlers.registered import Registered

if TYPE_CHECKING:
    from windlass.app.every import Declarations

P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L", bound=Lifespan)
H = TypeVar("H", bound=Handler[..., Any])


class Registering(Surroundings, ABC):
    """Makes handlers and consumers of functions, and knows what is registered."""

    def __init__(self, queue: str) -> None:
        """Have none yet; jobs of handlers that name no queue go to `queue`."""
        super().__init__()
        self._default_queue = check_name(queue, "queue")
        self._registry = Registry()
        self._by_kind: dict[str, Handler[..., Any]] = {}
        self._lifespans = Lifespans()
        self._declarations: Declarations | None = None

    @property
    @abstractmethod
    def _home(self) -> Home:
        """The app itself, which all that is registered belongs to."""

    @property
    def job(self) -> JobDecorator:
        """Make a handler of a function: `@app.job`, or `@app.job(queue="email", max_attempts=5)`.

        `async def` runs on the event loop, `def` in a thread, and with `process=True` in a child process that can be
        killed. The jobs are of `kind`, by default the name of the function, and `aliases` are kinds that it had before.
        `max_attempts` and `priority` are stamped on each job at its enqueue, `timeout` and `retry` hold where it runs.
        A parameter annotated with `Context`, or with a type that a lifespan provides, is given by the server.
        """
        return JobDecorator(self._register, JobOptions())

    def every(
        self,
        rule: str | timedelta | float,
        *,
        id: str | None = None,
        timezone: str = "UTC",
        args: Mapping[str, object] = NOTHING,
        catch_up: CatchUp = "one",
        overlap: Overlap = "allow",
    ) -> Callable[[H], H]:
        """Let a handler run by itself: `@app.every("*/5 * * * *")` above `@app.job`, which stays as it is.

        `rule` is a cron expression, an interval as `timedelta`, or a number of seconds. Each server of the app writes
        the schedule when it starts, by default under the kind of the handler, and it fires while one of them is live.
        `args` are the arguments of the handler by name. Several with different ids may stand above one handler.

        ```python
        import windlass

        app = windlass.App("memory://")


        @app.every("30 2 * * *", timezone="Europe/Berlin", args={"team": "sales"})
        @app.job
        async def report(team: str) -> None: ...


        assert app.schedules == ("report",)
        ```
        """
        declarations = self._declare()
        return declarations.every(rule, id=id, timezone=timezone, args=args, catch_up=catch_up, overlap=overlap)

    def consumer(
        self,
        queue: str,
        *,
        timeout: Duration | Unset | None = UNSET,
        retry: RetryRule | Unset = UNSET,
        process: bool = False,
    ) -> Callable[[Callable[P, T]], Consumer[P, T]]:
        """Let a function take the raw jobs of a queue, those without a kind: it gets the `Job` with its bytes."""
        check_name(queue, "queue")

        def register(function: Callable[P, T]) -> Consumer[P, T]:
            registered = Registered(
                kind=None,
                queue=queue,
                function=function,
                runs_in=runs_in(function, process=process),
                arguments=JobArgument(function, self._provider),
                timeout=checked_timeout(timeout),
                retry=checked_retry(retry),
            )
            self._registry.add_consumer(registered)
            return Consumer(self._home, registered, function)

        return register

    def lifespan(self, function: L) -> L:
        """Open what handlers need once per process: an async generator function that yields it once.

        Handlers get it by type, as a parameter that is annotated with what the function is annotated to yield. Many are
        opened in the order of their registration and closed in reverse.
        """
        self._lifespans.add(function)
        for registered in (*self.handlers.values(), *self.consumers.values()):
            if isinstance(registered.arguments, (JsonArguments, JobArgument)):
                registered.arguments.forget()
        return function

    def handler(self, kind: str) -> Handler[..., Any]:
        """Return the handler of a kind, also by one of its aliases; raises `UnknownKind`."""
        registered = self.handlers.get(kind)
        if registered is None or registered.kind is None:
            raise UnknownKind(kind, self.handlers)
        return self._by_kind[registered.kind]

    @property
    def handlers(self) -> Mapping[str, Registered]:
        """The handlers by kind, each under its aliases too."""
        return self._registry.handlers

    @property
    def consumers(self) -> Mapping[str, Registered]:
        """The consumers by queue."""
        return self._registry.consumers

    @property
    def schedules(self) -> Collection[str]:
        """The ids of the schedules that the app declares."""
        return () if self._declarations is None else tuple(self._declarations.declared)

    def services(self, around: Around) -> Sequence[Service]:
        """Return what declares schedules and makes their jobs, unless the server is to leave that to others."""
        declared = () if self._declarations is None else tuple(self._declarations.declared.values())
        if not around.config.schedules or (around.client.store.features.served and not declared):
            return ()
        made: Service = import_module("windlass.schedule.scheduler").make_schedule_service(declared, around)
        return (made,)

    def open_lifespan(self) -> AbstractAsyncContextManager[Mapping[type, Any]]:
        """Open what handlers need, once per process; gives what there is, by type."""
        return self._lifespans.open()

    def _declare(self) -> "Declarations":
        if self._declarations is None:
            # loaded when it is asked for: most apps have no schedule, and need no cron and no time zones
            made: Declarations = import_module("windlass.app.every").Declarations(self._home)
            self._declarations = made
        return self._declarations

    def _register(self, function: Callable[..., Any], options: JobOptions) -> Handler[..., Any]:
        where = runs_in(function, process=options.process)
        arguments = JsonArguments(function, self._provider)
        kind = getattr(function, "__name__", "") if options.kind is None else options.kind
        queue = self._default_queue if options.queue is None else check_name(options.queue, "queue")
        priority = None if options.priority is None else check_priority(options.priority)
        max_attempts = None if options.max_attempts is None else check_max_attempts(options.max_attempts)
        registered = Registered(
            kind=check_name(kind, "kind"),
            queue=queue,
            function=function,
            runs_in=where,
            arguments=arguments,
            timeout=checked_timeout(options.timeout),
            retry=checked_retry(options.retry),
            aliases=checked_aliases(options.aliases),
            priority=priority,
            max_attempts=max_attempts,
        )
        template = NewJob(queue, kind=kind, priority=priority, max_attempts=max_attempts)
        self._registry.add(registered)
        made_of = AsyncHandler[..., Any] if is_async(function) else SyncHandler[..., Any]
        made = self._by_kind[kind] = made_of(self._home, registered, arguments, template)
        return made

    def _provider(self, annotation: Any) -> type | None:  # noqa: ANN401 - whatever stands behind a parameter's colon
        return Context if wants_context(annotation) else self._lifespans.provides(annotation)
