"""Looking at what was enqueued: the assertions of a test."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from windlass.app.app import App
from windlass.app.consumer import Consumer
from windlass.app.handler import Handler
from windlass.blocking.portal import Portal
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.expect import Expected, What, expected, told

T = TypeVar("T")

_PAGE = 1_000


class StoreReader:
    """Reads a store in memory, without waiting."""

    answers_at_once = True
    """Whether every call of the store is done when the event loop has turned: then a test knows when all is quiet."""

    def __init__(self, store: Store) -> None:
        """Read `store`."""
        self._store = store

    def read(self, query: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        """Return what `query` returns for the store."""
        return at_once(query(self._store))

    def close(self) -> None:
        """Do nothing: the store is closed elsewhere."""


class DatabaseReader(StoreReader):
    """Reads a store in a database, from a thread with connections of its own: a test need not await it."""

    answers_at_once = False

    def __init__(self, store: Store) -> None:
        """Read what `store` reads, and make its schema now: later a transaction of the test may hold the locks."""
        super().__init__(store.sibling())
        self._portal = Portal()
        try:
            self._portal.call(self._store.open)
        except BaseException:
            self.close()
            raise

    def read(self, query: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        """Return what `query` returns for the store; a transaction that is still open is not visible to it."""
        return self._portal.call(lambda: query(self._store))

    def close(self) -> None:
        """Let go of the connections."""
        self._portal.close(self._store.close)


class Looking:
    """What a test asks about the jobs of an app: nothing here has to be awaited."""

    app: App
    """The app under test."""

    def __init__(self, app: App, reader: StoreReader) -> None:
        """Look at the jobs of `app` by `reader`."""
        self.app = app
        self._reader = reader

    def jobs(
        self,
        what: Handler[..., Any] | Consumer[..., Any] | str | None = None,
        *,
        queue: str | None = None,
        state: State | str | None = None,
    ) -> list[Job]:
        """Return the jobs that there are, in the order of their enqueue: of a handler, a consumer or a kind, or all."""
        kind = what.kind if isinstance(what, Handler) else what if isinstance(what, str) else None
        if isinstance(what, Consumer):
            queue = what.queue if queue is None else queue
        chosen = JobFilter(queue=queue, kind=kind, state=state)
        found = self._reader.read(lambda store: _all(store, chosen))
        return [job for job in found if job.kind is None] if isinstance(what, Consumer) else found

    def assert_enqueued(
        self, what: What, *args: object, queue: str | None = None, count: int | None = None, **kwargs: object
    ) -> Job:
        """Fail unless such a job was enqueued, in whichever state it is now; return it, the first of several.

        `what` is a handler, a kind, a consumer (with the payload as its one argument) or `handler.call(...)`. The
        arguments that are given must be equal, the others may be anything; those of a call must all be. With `count`
        there must be exactly so many.
        """
        __tracebackhide__ = True
        wanted, found, there = self._look(what, args, kwargs, queue)
        if not found:
            message = f"{wanted} was not enqueued; {told(wanted, there, self._handlers)}"
            raise AssertionError(message)
        if count is not None and len(found) != count:
            message = (
                f"{wanted} was enqueued {len(found):,} times, not {count:,}; {told(wanted, there, self._handlers)}"
            )
            raise AssertionError(message)
        return found[0]

    def assert_not_enqueued(self, what: What, *args: object, queue: str | None = None, **kwargs: object) -> None:
        """Fail if such a job was enqueued: what `assert_enqueued` would find."""
        __tracebackhide__ = True
        wanted, found, _ = self._look(what, args, kwargs, queue)
        if found:
            message = f"{wanted} was enqueued; {told(wanted, found, self._handlers)}"
            raise AssertionError(message)

    @property
    def _handlers(self) -> Mapping[str, Any]:
        return self.app.handlers

    def _look(
        self, what: What, args: tuple[object, ...], kwargs: dict[str, object], queue: str | None
    ) -> tuple[Expected, list[Job], list[Job]]:
        wanted = expected(self._handlers, what, args, kwargs, queue)
        there = self.jobs()
        return wanted, [job for job in there if wanted.matches(job)], there


def assert_enqueued(
    app: App | Looking, what: What, *args: object, queue: str | None = None, count: int | None = None, **kwargs: object
) -> Job:
    """Fail unless such a job was enqueued: `TestApp.assert_enqueued`, also for an app on a `memory://` of its own."""
    __tracebackhide__ = True
    return _looking(app).assert_enqueued(what, *args, queue=queue, count=count, **kwargs)


def assert_not_enqueued(
    app: App | Looking, what: What, *args: object, queue: str | None = None, **kwargs: object
) -> None:
    """Fail if such a job was enqueued: `TestApp.assert_not_enqueued`, also for an app on a `memory://` of its own."""
    __tracebackhide__ = True
    _looking(app).assert_not_enqueued(what, *args, queue=queue, **kwargs)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns; raises `InvalidValue` when it has to wait, which a store in memory never does."""
    try:
        # a long look lets others go on in between; then there is nothing to wait for
        while work.send(None) is None:
            pass
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    message = "only a store in memory can be looked at without waiting: use windlass.testing.in_memory(app)"
    raise InvalidValue(message)


def _looking(app: App | Looking) -> Looking:
    return app if isinstance(app, Looking) else Looking(app, StoreReader(app.client.store))


async def _all(store: Store, chosen: JobFilter) -> list[Job]:
    found: list[Job] = []
    while page := await store.jobs(chosen, after=found[-1].seq if found else None, limit=_PAGE):
        found += page
    return found
