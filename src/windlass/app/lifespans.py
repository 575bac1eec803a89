"""What handlers need besides their arguments: opened once per process, and handed over by type."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias, cast, get_args, get_origin

from windlass.core.errors import InvalidValue
from windlass.handlers.signature import annotation_of

Lifespan: TypeAlias = Callable[[], AsyncIterator[Any]] | Callable[[], AbstractAsyncContextManager[Any]]
"""An async generator function that yields once, or a function that returns an async context manager."""

_WHAT: Final = "a lifespan is an async function that yields once"
_YIELDS: Final = (AsyncIterator, AsyncGenerator, AsyncIterable, AbstractAsyncContextManager)


class Lifespans:
    """The lifespans of an app, opened in the order of their registration and closed in reverse."""

    def __init__(self) -> None:
        """Have none yet."""
        self._lifespans: list[_Lifespan] = []

    def add(self, function: Lifespan) -> None:
        """Take one more."""
        self._lifespans.append(_Lifespan(function))

    def provides(self, annotation: Any) -> type | None:  # noqa: ANN401 - an annotation
        """Return the type by which a parameter annotated like this is provided; None when it is not."""
        provided = [each.provides for each in self._lifespans]
        for wanted in (annotation, get_origin(annotation)):
            if wanted is not None and any(wanted == each for each in provided):
                found: type = wanted
                return found
        return None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Mapping[type, Any], None]:
        """Open all of them; gives what there is, by type. What was opened is closed also when a later one fails."""
        provided: dict[type, Any] = {}
        async with AsyncExitStack() as stack:
            for lifespan in self._lifespans:
                value = await stack.enter_async_context(lifespan.make())
                if value is not None:
                    _provide(provided, lifespan.provides or type(value), value)
            yield provided


class _Lifespan:
    def __init__(self, function: Lifespan) -> None:
        made: Callable[..., Any] = function
        self._function = made
        self._name = f"{getattr(function, '__name__', repr(function))}()"
        needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
        if needed:
            message = f"a lifespan takes no arguments, and {self._name} wants {needed[0].name}"
            raise InvalidValue(message)
        if inspect.iscoroutinefunction(function):
            message = f"{_WHAT}: {self._name} has no yield"
            raise InvalidValue(message)
        if inspect.isgeneratorfunction(function):
            message = f"{_WHAT}: write async def {self._name}"
            raise InvalidValue(message)
        self._make: Callable[[], object] = asynccontextmanager(made) if inspect.isasyncgenfunction(function) else made

    def make(self) -> AbstractAsyncContextManager[Any]:
        """Return what opens it; raises `InvalidValue` when that is nothing that can be opened."""
        made = self._make()
        if isinstance(made, AbstractAsyncContextManager):
            return cast("AbstractAsyncContextManager[Any]", made)
        if inspect.iscoroutine(made):
            made.close()
        message = f"{_WHAT}, or one that returns an async context manager: {self._name} returned {_shown(made)}"
        raise InvalidValue(message)

    @property
    def provides(self) -> type | None:
        """The type that is annotated to be yielded; None when that is not known before it is open."""
        written = getattr(self._function, "__annotations__", {}).get("return", inspect.Parameter.empty)
        annotation = annotation_of(self._function, "return", written)
        arguments = get_args(annotation)
        if get_origin(annotation) not in _YIELDS or not arguments:
            return None
        wanted: Any = arguments[0]
        return None if wanted in (Any, type(None)) else wanted


def _provide(provided: dict[type, Any], wanted: type, value: object) -> None:
    if wanted in provided:
        message = f"two lifespans provide {wanted!r}, and handlers could not tell which: let each yield its own type"
        raise InvalidValue(message)
    provided[wanted] = value


def _shown(value: object) -> str:
    """Name a value by its type: what a lifespan makes may hold a password."""
    return "None" if value is None else f"an object of type {type(value).__qualname__}"
