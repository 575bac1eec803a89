"""The handlers and consumers of an app, by what they do."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.handlers.registered import Registered

T = TypeVar("T")


class Registry:
    """Knows which function does which kind, and refuses a second one for the same."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._handlers: dict[str, Registered] = {}
        self._consumers: dict[str, Registered] = {}

    @property
    def handlers(self) -> Mapping[str, Registered]:
        """The handlers by kind, each under its aliases too."""
        return self._handlers

    @property
    def consumers(self) -> Mapping[str, Registered]:
        """The consumers by queue."""
        return self._consumers

    def add(self, registered: Registered) -> None:
        """Let a function do its kind, and what it was called before."""
        kinds = [check_name(kind, "kind") for kind in (registered.kind, *registered.aliases)]
        for kind in kinds:
            _check_free(self._handlers, kind, registered, "kind")
        # made anew from the same place: what the former one had is its own no more
        for kind in [kind for kind, known in self._handlers.items() if _same_place(known, registered)]:
            if self._handlers[kind].kind == registered.kind:
                del self._handlers[kind]
        self._handlers.update((kind, registered) for kind in kinds)

    def add_consumer(self, registered: Registered) -> None:
        """Let a function take the raw jobs of its queue."""
        _check_free(self._consumers, registered.queue, registered, "consumer of queue")
        self._consumers[registered.queue] = registered


def place_of(function: Callable[..., Any]) -> str:
    """Return where a function is defined, for people."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"


def _check_free(taken: Mapping[str, Registered], name: str, registered: Registered, what: str) -> None:
    former = taken.get(name)
    if former is None or _same_place(former, registered):
        return
    advice = "give one of them another kind=" if what == "kind" else "a queue has one consumer"
    message = (
        f"{what} {name!r} is done by {place_of(former.function)} already, and {place_of(registered.function)} wants it "
        f"too: {advice}"
    )
    raise InvalidValue(message)


def _same_place(one: Registered, other: Registered) -> bool:
    # a module that was loaded again, or a cell that was run again, makes its functions anew
    place = place_of(one.function)
    return place == place_of(other.function) and "<" not in place
