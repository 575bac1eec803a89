"""Handlers made ready for a server: everything that is the same for all their jobs is looked up once."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, get_origin

from windlass.core.errors import InvalidValue
from windlass.core.job import Job
from windlass.core.retry import RetryRule
from windlass.core.settings import Unset
from windlass.engine.context import Context
from windlass.engine.served import Served
from windlass.handlers.registered import Registered, RunsIn


class ReadyHandler:
    """A handler with what a lifespan provides for it and the settings that hold here."""

    __slots__ = (
        "context_name",
        "decode",
        "extras",
        "function",
        "registered",
        "retry",
        "runs_in",
        "timeout",
        "timeout_seconds",
    )

    def __init__(
        self,
        registered: Registered,
        provided: Mapping[type, Any],
        *,
        timeout: timedelta | None,
    ) -> None:
        """Take from `provided` what the handler wants; `timeout` holds unless it has its own."""
        self.registered = registered
        self.runs_in = registered.runs_in
        self.function: Callable[..., Any] = registered.function
        self.decode: Callable[[Job], dict[str, Any]] = registered.arguments.decode
        self.timeout = timeout if isinstance(registered.timeout, Unset) else registered.timeout
        self.timeout_seconds = None if self.timeout is None else self.timeout.total_seconds()
        self.retry: RetryRule | Unset = registered.retry
        wants = registered.arguments.wants
        self.context_name = next((name for name, wanted in wants.items() if wanted is Context), None)
        # a child process opens a lifespan of its own
        given_here = registered.runs_in is not RunsIn.PROCESS
        self.extras = {
            name: _provided(registered, name, wanted, provided)
            for name, wanted in wants.items()
            if wanted is not Context and given_here
        }

    @property
    def name(self) -> str:
        """How people know it."""
        return self.registered.kind or f"consumer of {self.registered.queue}"


class ReadyHandlers(NamedTuple):
    """The handlers of an app, ready for the jobs of one server."""

    by_kind: Mapping[str, ReadyHandler]
    """Each handler under its kind and its aliases."""
    by_queue: Mapping[str, ReadyHandler]
    """Consumers, which take the jobs of their queue that no handler takes."""


def ready_handlers(app: Served, provided: Mapping[type, Any], *, timeout: timedelta | None) -> ReadyHandlers:
    """Return the handlers of `app` with what its lifespan has `provided`; `timeout` holds where they have none."""
    return ReadyHandlers(
        {kind: ReadyHandler(registered, provided, timeout=timeout) for kind, registered in app.handlers.items()},
        {queue: ReadyHandler(registered, provided, timeout=timeout) for queue, registered in app.consumers.items()},
    )


def _provided(registered: Registered, name: str, wanted: type, provided: Mapping[type, Any]) -> Any:  # noqa: ANN401 - whatever a lifespan gave
    if wanted in provided:
        return provided[wanted]
    plain = get_origin(wanted) or wanted
    for value in provided.values():
        if isinstance(value, plain):
            return value
    message = (
        f"parameter {name!r} of {registered.function.__qualname__} wants {wanted!r}, and no lifespan of the app "
        "provides one: add an @app.lifespan that yields it"
    )
    raise InvalidValue(message)
