"""Handler: what `@app.job` makes of a function."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from windlass.app.handle import BlockingHandle, Call, Handle
from windlass.app.home import Home
from windlass.codec import JSON, Encoded
from windlass.core.duration import Duration
from windlass.core.errors import InvalidValue
from windlass.core.job import NewJob
from windlass.core.unique import Unique
from windlass.engine.context import Context, current
from windlass.handlers.arguments import JsonArguments
from windlass.handlers.registered import Registered
from windlass.handlers.results import ResultReader
from windlass.handlers.secret_paths import HEADER

P = ParamSpec("P")
R = TypeVar("R")


class Enqueueing(Generic[P, R]):
    """Makes jobs of one handler, each as `template` says."""

    def __init__(
        self,
        app: Home,
        arguments: JsonArguments,
        results: ResultReader[R],
        template: NewJob,
        connection: object = None,
    ) -> None:
        """Enqueue through `app`, in the transaction of `connection` if there is one."""
        self.app = app
        self._arguments = arguments
        self._results = results
        self._template = template
        self._connection = connection

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put a job in line that calls the handler with these arguments; when this returns it is kept.

        The arguments are checked here: `TypeError` where the call itself would raise it, `InvalidValue` with the path
        of a value that does not fit its annotation, `EncodeError` for one that JSON cannot say, `PayloadTooLarge`.
        """
        return await self.app.enqueue(self._call(args, kwargs), connection=self._connection)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> BlockingHandle[R]:
        """Put a job in line from code without an event loop, as `enqueue` does."""
        return self.app.enqueue_sync(self._call(args, kwargs), connection=self._connection)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return a call to be enqueued later, with others (`app.enqueue_many`) or by success (`ctx.then`)."""
        if self._connection is not None:
            message = "a call has no connection of its own: give connection= to app.enqueue_many"
            raise InvalidValue(message)
        return self._call(args, kwargs)

    def _call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call[R]:
        payload = Encoded(self._arguments.encode(args, kwargs), JSON.name)
        queue, _, *rest = self._template
        job = NewJob._make((queue, payload, *rest))
        known = self._arguments.headers
        if known is not None:
            job = job._replace(headers=_with(job.headers, known))
        if job.tenant is None:
            tenant = self.app.tenant_now()
            job = job if tenant is None else job._replace(tenant=tenant)
        return Call(job, self._results)


class BoundOptions(Enqueueing[P, R]):
    """A handler with options for the jobs to be enqueued: what `handler.options(...)` gives."""


class Handler(Enqueueing[P, R]):
    """A function that does a kind of job: what `@app.job` makes of it. It can still be called like the function.

    A wrong argument to `enqueue` is a type checker's error, and at run time one at the caller, not in a server.

    ```python
    from datetime import timedelta

    import windlass

    app = windlass.App("memory://")

    @app.job(queue="email", max_attempts=5)
    async def send_welcome(user_id: int, *, locale: str = "en") -> str:
        return f"welcome {user_id} in {locale}"

    print(await send_welcome(1))
    handle = await send_welcome.enqueue(42, locale="sv")
    later = await send_welcome.options(delay=timedelta(hours=1)).enqueue(42)
    many = await app.enqueue_many(send_welcome.call(n) for n in range(100))
    ```
    """

    __name__: str

    def __init__(self, app: Home, registered: Registered, arguments: JsonArguments, template: NewJob) -> None:
        """Make jobs of `registered` as `template` says."""
        super().__init__(app, arguments, ResultReader(registered.function), template)
        wrapper: Any = self
        update_wrapper(wrapper, registered.function, updated=())
        self.registered = registered

    @property
    def kind(self) -> str:
        """The kind of its jobs."""
        return self._template.kind or ""

    @property
    def queue(self) -> str:
        """The queue that its jobs go to unless `options` says otherwise."""
        return self._template.queue

    @property
    def function(self) -> Callable[..., Any]:
        """The plain function."""
        return self.registered.function

    @property
    def secret_fields(self) -> tuple[str, ...]:
        """The paths of what is marked with `Secret`: `pin`, `card.number`, `items[].code`."""
        return self._arguments.secret_fields

    def options(
        self,
        *,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        max_attempts: int | None = None,
        unique: Unique | str | None = None,
        headers: Mapping[str, str] | None = None,
        tenant: str | None = None,
        id: UUID | str | None = None,
        kv: Mapping[bytes | str, bytes | None] | None = None,
        connection: object = None,
    ) -> BoundOptions[P, R]:
        """Return the same handler with options for its next jobs, each as `Client.enqueue` takes it."""
        mine = self._template
        _check_headers(headers)
        template = NewJob(
            queue=mine.queue if queue is None else queue,
            id=id,
            kind=mine.kind,
            priority=mine.priority if priority is None else priority,
            run_at=run_at,
            delay=delay,
            max_attempts=mine.max_attempts if max_attempts is None else max_attempts,
            unique=unique,
            headers=headers,
            tenant=tenant,
            kv=kv,
        )
        return BoundOptions(self.app, self._arguments, self._results, template, connection)

    def handle(self, id: UUID | str) -> Handle[R]:
        """Return the handle of a job of this handler that was enqueued before, by its id."""
        return self.app.handle(id, self._results)

    def handle_sync(self, id: UUID | str) -> BlockingHandle[R]:
        """Return the handle of a job of this handler by its id, for code without an event loop."""
        return self.app.handle_sync(id, self._results)

    def __repr__(self) -> str:
        """Show the kind and the function."""
        return f"<{type(self).__name__} of kind {self.kind!r}: {self.function.__module__}.{self.function.__qualname__}>"

    def _invoke(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the function's own
        signature = self._arguments.signature
        if not self._contexts and not signature.marked:
            return self.function(*args, **kwargs)
        has_context = any(isinstance(each, Context) for each in (*args, *kwargs.values()))
        absent = () if has_context else [name for name in self._contexts if name not in kwargs]
        bound = signature.bind(args, kwargs, without=absent)
        bound.update((name, current()) for name in absent)
        for name in signature.marked:
            if name not in bound:
                message = (
                    f"{signature.name}() needs {name}: a lifespan provides it to jobs, a direct call has to give it"
                )
                raise TypeError(message)
        return self.function(**bound)

    @cached_property
    def _contexts(self) -> Sequence[str]:
        return [name for name in self._arguments.signature.parameters if self._is_context(name)]

    def _is_context(self, name: str) -> bool:
        # what cannot be read now is no concern of a direct call
        with suppress(InvalidValue):
            return self._arguments.signature.annotation(name) is Context
        return False


def _with(headers: Mapping[str, str] | None, known: Mapping[str, str]) -> Mapping[str, str]:
    if headers is None:
        return known
    if not isinstance(headers, Mapping):
        # refused with all the rest of the job
        return headers
    return {**headers, **known}


def _check_headers(headers: object) -> None:
    if isinstance(headers, Mapping) and HEADER in headers:
        message = (
            f"header {HEADER!r} is written by handlers: mark arguments with windlass.Secret, or choose another name"
        )
        raise InvalidValue(message)


class AsyncHandler(Handler[P, R]):
    """A handler whose function is a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function here and now, no job involved; a context that it takes is the caller's own."""
        called: Coroutine[Any, Any, R] = self._invoke(args, kwargs)
        return called


class SyncHandler(Handler[P, R]):
    """A handler whose function is a plain one."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, no job involved; a context that it takes is the caller's own."""
        result: R = self._invoke(args, kwargs)
        return result
