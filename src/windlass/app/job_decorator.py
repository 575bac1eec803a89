"""`@app.job`, in the eyes of a type checker."""
# The first form that fits is meant, and a coroutine function fits the forms for plain functions too: the checkers
# warn of that, rightly and in vain.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

import difflib
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, overload

from windlass.app.handler import AsyncHandler, Handler, SyncHandler
from windlass.core.duration import Duration
from windlass.core.errors import InvalidValue
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, Unset
from windlass.engine.context import Context

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What `@app.job` takes; what is left out is as the queue has it."""

    kind: str | None = None
    queue: str | None = None
    max_attempts: int | None = None
    priority: int | None = None
    timeout: Duration | Unset | None = UNSET
    retry: RetryRule | Unset = UNSET
    process: bool = False
    aliases: Sequence[str] = ()


Register: TypeAlias = Callable[[Callable[..., Any], JobOptions], Handler[..., Any]]


class Untold:
    """What no function is annotated with: whoever takes it as its first argument takes anything there."""


class JobDecorator:
    """Registers functions as handlers; with options it gives a decorator that has them."""

    def __init__(self, register: Register, options: JobOptions) -> None:
        """Register by `register`, with `options`."""
        self._register = register
        self._options = options

    # a first parameter without an annotation could be a context or not: nothing is known of such arguments
    @overload
    def __call__(
        self, function: Callable[Concatenate[Untold, P], Coroutine[Any, Any, R]], /
    ) -> AsyncHandler[..., R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncHandler[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncHandler[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Untold, P], R], /) -> SyncHandler[..., R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> SyncHandler[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncHandler[P, R]: ...

    @overload
    def __call__(
        self,
        /,
        *,
        kind: str | None = None,
        queue: str | None = None,
        max_attempts: int | None = None,
        priority: int | None = None,
        timeout: Duration | Unset | None = UNSET,
        retry: RetryRule | Unset = UNSET,
        process: bool = False,
        aliases: Sequence[str] = (),
    ) -> "JobDecorator": ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a handler of `function`, or take options for the function that follows."""
        _check_known(options)
        if function is None:
            return JobDecorator(self._register, replace(self._options, **options))
        if not callable(function):
            message = f"@app.job stands above a function, not {function!r}: options go by name, @app.job(queue='email')"
            raise InvalidValue(message)
        return self._register(function, self._options)


def _check_known(options: Collection[str]) -> None:
    known = [each.name for each in fields(JobOptions)]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
            message = f"@app.job has no option {name!r}: {advice}"
            raise TypeError(message)
