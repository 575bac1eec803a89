"""Work that belongs to the thread of whoever made a call."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from windlass.core.errors import InvalidValue

T = TypeVar("T")


class Errand(Protocol):
    """Carries work to the thread that a connection belongs to."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what `work` returns there."""
        ...


errand: ContextVar[Errand | None] = ContextVar("windlass_errand", default=None)
"""Set by the blocking client: its loop runs in a thread of its own, and the connection belongs to the caller's."""


async def in_its_thread(work: Callable[[], T]) -> T:
    """Call `work` in the thread of whoever made the call: here, or where the blocking client waits."""
    carry = errand.get()
    return work() if carry is None else await carry(work)


def refuse_blocking(name: str, instead: str) -> None:
    """Refuse a connection that belongs to an event loop, when the call came from a thread without one."""
    if errand.get() is not None:
        message = (
            f"an {name} belongs to an event loop, so it cannot be used with the blocking client: use windlass.connect, "
            f"or {instead}"
        )
        raise InvalidValue(message)
