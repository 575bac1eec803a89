"""Store call that an operation carries: its conversions from and to JSON, and the parts of a large one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from windlass.api.calls import MOST_JOBS
from windlass.core.ids import JobId
from windlass.core.store_calls import StoreCall

A = TypeVar("A", bound=msgspec.Struct)
C = TypeVar("C", bound=StoreCall[Any])
E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Parts(Generic[R]):
    """Parts of a call that may be too large for one request: each is sent as a request of its own, in their order."""

    divide: Callable[[Any], Iterable[Any]]
    """Return the parts of a call; none where there is nothing to send."""
    join: Callable[[Sequence[R]], R]
    """Return the reply of the call, of the replies of its parts."""
    is_last: Callable[[Any, R], bool] = lambda _part, _reply: False
    """Whether the parts after this one need not be sent, by its reply."""


@dataclass(frozen=True, slots=True)
class CarriedCall(Generic[C, R, A, T]):
    """Store call that an operation carries, as its client sends it; the serving side has a handler for it."""

    call: type[C]
    asks: type[A]
    tells: type[T]
    request: Callable[[C], A] = field(kw_only=True)
    """Return the request of a call."""
    reply: Callable[[T], R] = field(kw_only=True)
    """Return the reply that a response contains."""
    parts: Parts[R] | None = field(default=None, kw_only=True)


class AuditedChange(NamedTuple):
    """Entry of the audit about a change: `target` names what was changed, or is the ids of the changed jobs."""

    action: str
    target: str | Sequence[JobId]
    detail: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCall(CarriedCall[C, R, A, T]):
    """Carried call that needs no handler: the serving side executes it as one call of its store."""

    read: Callable[[A], C]
    """Return the call of a request; raises `InvalidValue` for values that no store takes."""
    response: Callable[[C, R], T]
    """Return the response to a call, of the store's reply."""
    audit: Callable[[C, R], AuditedChange | None] | None = None
    """Return the entry of the audit about an executed call, or None when it has changed nothing."""


def pages_of(name: str, join: Callable[[Sequence[R]], R]) -> Parts[R]:
    """Divide a call with more than `MOST_JOBS` values in the field `name`; with none it needs no request."""

    def divide(call: Any) -> list[Any]:  # noqa: ANN401 - any call with this field
        values = list(getattr(call, name))
        return [replace(call, **{name: page}) for page in pages(values, MOST_JOBS)]

    return Parts(divide, join)


def parts_of_limit(join: Callable[[Sequence[int]], int]) -> Parts[int]:
    """Divide a call that changes up to `limit` jobs and counts them; a part that counts fewer is the last one."""

    def divide(call: Any) -> list[Any]:  # noqa: ANN401 - any call with a limit
        return [replace(call, limit=limit) for limit in limits_of(call.limit)]

    return Parts(divide, join, is_last=lambda part, count: count < part.limit)


def limits_of(limit: int) -> list[int]:
    """Return `limit` in parts of at most `MOST_JOBS`."""
    whole, rest = divmod(max(limit, 0), MOST_JOBS)
    return [MOST_JOBS] * whole + [rest] * bool(rest)


def capped_limit(join: Callable[[Sequence[R]], R]) -> Parts[R]:
    """Send a call with a `limit` of at most `MOST_JOBS`: its caller asks again for more. Below 1 it is not sent."""

    def divide(call: Any) -> list[Any]:  # noqa: ANN401 - any call with a limit
        return [replace(call, limit=min(call.limit, MOST_JOBS))] if call.limit > 0 else []

    return Parts(divide, join)


def pages(values: Sequence[E], most: int) -> list[Sequence[E]]:
    """Return all of `values` in their order, at most `most` at a time."""
    return [values[begin : begin + most] for begin in range(0, len(values), most)]


def concatenated(replies: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the elements of all replies."""
    return [each for reply in replies for each in reply]


def merged(replies: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    """Return the entries of all replies."""
    return {key: value for reply in replies for key, value in reply.items()}


def nothing(replies: Sequence[None]) -> None:
    """Return the reply of a call without a reply."""
    del replies
