"""App: functions as jobs."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from windlass.app.client_settings import ClientSettings
from windlass.app.clients import Clients
from windlass.app.handle import BlockingHandle, Call, Handle
from windlass.app.home import Home
from windlass.app.registering import Registering
from windlass.app.sources import for_a_server, for_clients, resolved
from windlass.blocking.client import BlockingClient
from windlass.client.client import Client
from windlass.client.steering import Id
from windlass.codec import JSON, Codec
from windlass.config import Resolved
from windlass.connect import open_store
from windlass.core.clock import Clock, Rng
from windlass.core.duration import Duration
from windlass.core.errors import AlreadyRunning, InvalidValue
from windlass.core.ids import job_id
from windlass.core.job import Enqueued
from windlass.core.names import check_name
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, QueueSettings, Unset
from windlass.core.store import Store
from windlass.core.store_guard import check_store_of
from windlass.engine.config import ServerConfig
from windlass.engine.served import TenantScope
from windlass.handlers.results import ResultReader

if TYPE_CHECKING:
    from windlass.app.eager import Eager

R = TypeVar("R")

DEFAULT_NAME: Final = "windlass"


class App(Registering):
    """Functions as jobs: registers handlers, enqueues calls of them, and is what a server serves.

    It opens at its first use or by `async with app`, and after `close` it may be opened again. `url` is a store URL, or
    a store of your own; the other settings are those of `connect`. `queue` is where jobs go that name none, `tenant`
    tells whom a job belongs to that is enqueued here and now, `tenant_scope` wraps the attempts of such jobs.
    `eager=True` runs every job in place, for tests of your own.

    ```python
    import windlass

    app = windlass.App("memory://")

    @app.job(queue="email", max_attempts=5)
    async def send_welcome(user_id: int, *, locale: str = "en") -> str:
        return f"welcome {user_id} in {locale}"

    async with app:
        handle = await send_welcome.enqueue(42, locale="sv")
        job = await handle.job()
        print(job.kind, job.queue, job.payload)
    ```

    In a program without an event loop:

    ```python
    app = windlass.App("memory://")

    @app.job
    def resize(path: str, *, width: int = 800) -> None: ...

    handle = resize.enqueue_sync("cat.png", width=400)
    print(handle.job().state)
    app.close_sync()
    ```
    """

    tenant: Callable[[], str | None] | None
    """Tells whom a job belongs to that is enqueued here and now, unless `options(tenant=...)` does."""
    tenant_scope: TenantScope | None
    """Wraps the attempts of jobs that have a tenant."""

    def __init__(
        self,
        url: str | Store | None = None,
        *,
        token: str | None = None,
        name: str | None = None,
        queue: str = "default",
        max_attempts: int | Unset = UNSET,
        lease: Duration | Unset = UNSET,
        priority: int | Unset = UNSET,
        retry: RetryRule | Unset = UNSET,
        keep_succeeded: Duration | Unset | None = UNSET,
        keep_dead: Duration | Unset | None = UNSET,
        keep_cancelled: Duration | Unset | None = UNSET,
        max_payload: int | Unset = UNSET,
        keep_max: int | Unset | None = UNSET,
        queues: Mapping[str, QueueSettings] | None = None,
        poll_interval: Duration | Unset = UNSET,
        worker: str | None = None,
        codec: Codec = JSON,
        clock: Clock | None = None,
        rng: Rng | None = None,
        tenant: Callable[[], str | None] | None = None,
        tenant_scope: TenantScope | None = None,
        eager: bool = False,
    ) -> None:
        """Refuse wrong settings; nothing is opened."""
        super().__init__(queue)
        self._name = UNSET if name is None else check_name(name, "name")
        self._config: Resolved | None = None
        self._flags: Mapping[str, object] = {}
        self.tenant = tenant
        self.tenant_scope = tenant_scope
        self.eager = eager
        self._given: ClientSettings = ClientSettings(
            url=url,
            token=token,
            max_attempts=max_attempts,
            lease=lease,
            priority=priority,
            retry=retry,
            keep_succeeded=keep_succeeded,
            keep_dead=keep_dead,
            keep_cancelled=keep_cancelled,
            max_payload=max_payload,
            keep_max=keep_max,
            queues=dict(queues or {}),
            poll_interval=poll_interval,
            worker=worker,
            codec=codec,
            clock=clock,
            rng=rng,
        )
        self._given.check()
        self._store: Store | None = None
        self._clients = Clients(self._connect)
        self._in_place: Eager | None = None
        self._in_test = False

    def queue(
        self,
        name: str,
        *,
        max_attempts: int | Unset = UNSET,
        lease: Duration | Unset = UNSET,
        priority: int | Unset = UNSET,
        retry: RetryRule | Unset = UNSET,
        keep_succeeded: Duration | Unset | None = UNSET,
        keep_dead: Duration | Unset | None = UNSET,
        keep_cancelled: Duration | Unset | None = UNSET,
    ) -> None:
        """Make a queue known, with settings of its own over those of the app; before the app is opened."""
        if self._clients.made:
            message = f"set queue {name!r} before the app is opened: its settings are read once"
            raise AlreadyRunning(message)
        single = QueueSettings(max_attempts, lease, priority, retry, keep_succeeded, keep_dead, keep_cancelled)
        settings = replace(self._given, queues={**self._given.queues, check_name(name, "queue"): single})
        settings.check()
        self._given = settings
        self._config = None

    def use_flags(self, flags: Mapping[str, object]) -> None:
        """Let settings that a command line was given go over all others; before the app is opened.

        A value is text, as it was typed, or of the setting's own type; None counts as left out. They are checked when
        the settings are read.
        """
        if self._clients.made:
            message = "give flags before the app is opened: its settings are read once"
            raise AlreadyRunning(message)
        self._flags, self._config = dict(flags), None

    @property
    def client(self) -> Client:
        """The app's client, which belongs to the event loop that used it first; raises `AlreadyRunning` in another."""
        self._check_store()
        return self._clients.client

    @property
    def blocking_client(self) -> BlockingClient:
        """The app's client for code without an event loop."""
        self._check_store()
        return self._clients.blocking

    async def open(self) -> None:
        """Connect to the store; harmless when it is open."""
        await self.client.open()

    async def close(self) -> None:
        """Let go of the store; what was accepted is finished first. The app may be opened again."""
        if self._in_place is not None:
            await self._in_place.close()
        await self._clients.close()
        self._config = None

    def close_sync(self) -> None:
        """Let go of what blocking calls have opened."""
        if self._in_place is not None and self._clients.has_blocking:
            self._clients.blocking.run(self._in_place.close_for)
        self._clients.close_blocking()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextmanager
    def on_store(self, store: Store, *, clock: Clock, rng: Rng) -> Generator[None, None, None]:
        """Be on another store for the time of a block, whatever the settings say; for tests.

        What the app had open before stays open, and is used again after the block. What it opens in the block is to be
        closed at its end, by `close` or `close_sync`.
        """
        given, former = self._given, (self._store, self._clients, self._config, self._in_place, self._in_test)
        self._given = replace(given, clock=clock, rng=rng)
        self._store, self._clients, self._config, self._in_place = store, Clients(self._connect), None, None
        self._in_test = True
        try:
            yield
        finally:
            self._given = replace(self._given, clock=given.clock, rng=given.rng)
            self._store, self._clients, self._config, self._in_place, self._in_test = former

    @property
    def in_test(self) -> bool:
        """Whether the app is on the store of a test now, by `on_store`."""
        return self._in_test

    async def enqueue(self, call: Call[R], *, connection: object = None) -> Handle[R]:
        """Put one call in line: what `handler.enqueue(...)` does."""
        _check_call(call)
        client = self.client
        done = await client.enqueue_job(call.new_job(), connection=connection)
        if self.eager:
            await self._run_in_place(client, [done], connection)
        return Handle(done, self._here, call.results)

    async def enqueue_many(self, calls: Iterable[Call[R]], *, connection: object = None) -> list[Handle[R]]:
        """Put calls in line, all or none, in their order; the handles come in that order too.

        With `connection` the jobs exist if and only if the caller's transaction commits.
        """
        listed = _listed(calls)
        done = await self._put(self.client, listed, connection)
        return [Handle(each, self._here, call.results) for each, call in zip(done, listed, strict=True)]

    def enqueue_sync(self, call: Call[R], *, connection: object = None) -> BlockingHandle[R]:
        """Put one call in line: what `handler.enqueue_sync(...)` does."""
        [handle] = self.enqueue_many_sync((call,), connection=connection)
        return handle

    def enqueue_many_sync(self, calls: Iterable[Call[R]], *, connection: object = None) -> list[BlockingHandle[R]]:
        """Put calls in line from code without an event loop, as `enqueue_many` does."""
        listed = _listed(calls)
        done = self.blocking_client.run(lambda client: self._put(client, listed, connection))
        return [
            BlockingHandle(each, self._blocking_here, call.results) for each, call in zip(done, listed, strict=True)
        ]

    def handle(self, id: Id, results: ResultReader[R]) -> Handle[R]:
        """Return the handle of a job that was enqueued before: what `handler.handle(id)` does."""
        return Handle(Enqueued(job_id(id), created=False), self._here, results)

    def handle_sync(self, id: Id, results: ResultReader[R]) -> BlockingHandle[R]:
        """Return the handle of a job that was enqueued before: what `handler.handle_sync(id)` does."""
        return BlockingHandle(Enqueued(job_id(id), created=False), self._blocking_here, results)

    def tenant_now(self) -> str | None:
        """Return whom a job belongs to that is enqueued here and now."""
        return None if self.tenant is None else self.tenant()

    @property
    def name(self) -> str:
        """What servers of this app are called among others."""
        return str(self.config.value("name") or DEFAULT_NAME)

    @property
    def queues(self) -> Collection[str]:
        """Every queue that the app knows of: of its handlers and consumers, with settings of its own, the default."""
        known = [self._default_queue, *(each.queue for each in self.handlers.values()), *self.consumers]
        return tuple(dict.fromkeys([*known, *self._settings().queues]))

    def __repr__(self) -> str:
        """Show the name and not the URL, which may hold a password."""
        return f"<App {self.name!r} with {len(self.handlers)} kinds>"

    @property
    def config(self) -> Resolved:
        """Every setting with the value that holds and where it came from, as it was when the app was opened."""
        if self._config is None:
            self._config = resolved(self._given, self._name, flags=self._flags)
        return self._config

    @property
    def url(self) -> str | Store | None:
        """Where the app's jobs are, by the settings that hold: a URL, which may hold a password, or a store."""
        return self._settings().url

    def server_config(self, given: ServerConfig) -> ServerConfig:
        """Return the settings of a server of this app that was `given` some in code."""
        return for_a_server(given, resolved(self._given, self._name, given.given(), flags=self._flags))

    @property
    def _home(self) -> Home:
        return self

    def _settings(self) -> ClientSettings:
        """Return what holds for the clients of the app."""
        return for_clients(self._given, self.config)

    def _check_store(self) -> None:
        if not self._in_test:
            check_store_of(self)

    def _connect(self) -> Client:
        settings = self._settings()
        if self._store is not None:
            return settings.connect(self._store.sibling())
        if settings.url is None:
            message = "the app has no store: write App('sqlite:///jobs.db'), or set WINDLASS_URL"
            raise InvalidValue(message)
        url = settings.url
        if isinstance(url, str):
            url = open_store(url, clock=settings.clock, rng=settings.rng, token=settings.token)
        self._store = url
        return settings.connect(self._store)

    def _here(self) -> Client:
        return self.client

    def _blocking_here(self) -> BlockingClient:
        return self.blocking_client

    async def _put(self, client: Client, calls: Sequence[Call[Any]], connection: object) -> list[Enqueued]:
        done = await client.enqueue_many([call.new_job() for call in calls], connection=connection)
        if self.eager:
            await self._run_in_place(client, done, connection)
        return done

    async def _run_in_place(self, client: Client, done: Sequence[Enqueued], connection: object) -> None:
        # inside of the caller's own transaction the jobs are not there yet
        if connection is None and any(each.created for each in done):
            await self._eager().run(client, done)

    def _eager(self) -> "Eager":
        if self._in_place is None:
            # loaded when it is asked for: a program that only enqueues needs nothing of what runs jobs
            made: Eager = import_module("windlass.app.eager").Eager(self)
            self._in_place = made
        return self._in_place


def _listed(calls: Iterable[Call[R]]) -> list[Call[R]]:
    listed = list(calls)
    for call in listed:
        _check_call(call)
    return listed


def _check_call(call: object) -> None:
    if not isinstance(call, Call):
        message = f"an app enqueues calls, handler.call(...), not {type(call).__name__}: others go by app.client"
        raise InvalidValue(message)
