"""Calls of a store as values, and the tables that say which function of a store executes each.

A store executes a call by its value: `do(command)` and `ask(query)`. What holds for all commands, such as the moved
check, a store therefore writes once, in the step that executes them.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, ClassVar, Generic, Self, TypeVar

from windlass.core.errors import WindlassError

R = TypeVar("R")
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])


class RepeatSafety(Enum):
    """The reason why a call whose reply was lost may be repeated."""

    SAME = "same"
    """It changes nothing, or the same again."""
    STORE = "store"
    """The store knows the request, also after a restart of everything."""
    REPLY = "reply"
    """The serving process keeps its replies for a while; after its restart it refuses to guess."""


class Part(Enum):
    """Part of a store: a store may keep each queue by itself."""

    STORE = "store"
    """What belongs to no queue: values of the caller, locks, servers, audit, timings, and the mark of a move."""
    QUEUE = "queue"
    """One queue, by its name."""
    QUEUES = "queues"
    """Queues by their names, or all queues where the call names none."""
    JOBS = "jobs"
    """Jobs by their ids, which do not tell their queues."""
    CLAIMS = "claims"
    """Claims by their tokens."""
    SCHEDULES = "schedules"
    """Schedules by their ids, or all schedules where the call names none."""
    ALL = "all"
    """All queues, and what belongs to none."""


@dataclass(frozen=True, slots=True)
class Touches:
    """The part of a store that a call reads or changes."""

    part: Part
    field: str | None = None
    """The field of the call that names it, such as `request.queues`."""

    def names(self, call: "StoreCall[Any]") -> Any:  # noqa: ANN401 - as the field has it
        """Return what the field of a call names, None where the call names nothing."""
        return None if self.field is None else attrgetter(self.field)(call)


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """A kind of call, and the function of a store that executes it."""

    call: "type[StoreCall[Any]]"
    run: F


class StoreCall(Generic[R]):
    """Call of a store, whose reply is an `R`. Equal calls ask for the same."""

    __slots__ = ()

    touches: ClassVar[Touches]

    @classmethod
    def by(cls, run: Callable[[S, Self], R | WindlassError]) -> Entry[Callable[[S, Any], Any]]:
        """Return the entry of a function that executes this call.

        An error that `run` raises undoes what it wrote. Where calls of several callers share a step, as on SQLite and
        SlateDB, `run` may return an error: it is raised to the caller of this call alone, and what it wrote stays.
        """
        return Entry(cls, run)

    @classmethod
    def by_coroutine(
        cls, run: Callable[[S, Self], Awaitable[R | WindlassError]]
    ) -> Entry[Callable[[S, Any], Awaitable[Any]]]:
        """Return the entry of a coroutine function that executes this call."""
        return Entry(cls, run)

    @classmethod
    def by_generator(
        cls, run: Callable[[S, Self], Generator[Any, Any, R]]
    ) -> Entry[Callable[[S, Any], Generator[Any, Any, Any]]]:
        """Return the entry of a generator function that executes this call: it yields statements, and receives rows."""
        return Entry(cls, run)


class Command(StoreCall[R]):
    """Store call that changes something."""

    __slots__ = ()

    repeat: ClassVar[RepeatSafety]
    begins_work: ClassVar[bool] = False
    """A store whose jobs were moved to another one refuses it with `StoreMoved`."""


class Query(StoreCall[R]):
    """Store call that only reads."""

    __slots__ = ()


def table_of(*entries: Entry[F]) -> Mapping[type[StoreCall[Any]], F]:
    """Return which function executes each kind of call; raises `TypeError` for a kind that is given twice."""
    table: dict[type[StoreCall[Any]], F] = {}
    for entry in entries:
        if entry.call in table:
            message = f"{entry.call.__name__} is given twice: keep one entry"
            raise TypeError(message)
        table[entry.call] = entry.run
    return table


def check_tables(calls: Collection[type[StoreCall[Any]]], *tables: Iterable[type[StoreCall[Any]]]) -> None:
    """Raise `TypeError` unless `tables` have each of `calls` once."""
    given = [call for table in tables for call in table]
    missing = [call.__name__ for call in calls if call not in given]
    twice = sorted({call.__name__ for call in given if given.count(call) > 1})
    strange = [call.__name__ for call in given if call not in calls]
    if missing or twice or strange:
        message = f"a store executes each call by one function: {missing=}, {twice=}, {strange=}"
        raise TypeError(message)
