"""What is to go wrong between clients and a server: told by a test, done by a proxy."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

Direction: TypeAlias = Literal["requests", "answers"]
BOTH: Final[Collection[Direction]] = ("requests", "answers")


class Runs(Protocol):
    """A request as far as it matters here: whether it runs something."""

    @property
    def runs(self) -> bool: ...


R = TypeVar("R", bound=Runs)
When: TypeAlias = int | Callable[[R], bool]
"""Of the requests from now that run something: the n-th, counted from 1, or the first that the function is true of."""


@dataclass
class Plan(Generic[R]):
    """What is to be done to one request, and an event for when it was done."""

    when: When[R]
    what: Literal["drop request", "drop reply", "fail"]
    error: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def meets(self, request: R) -> bool:
        if not request.runs:
            return False
        if callable(self.when):
            return self.when(request)
        self.when -= 1
        return self.when == 0


class Faults(Generic[R]):
    """The faults of all connections to one server.

    `latency` (in seconds) is added each way to whatever passes. `requests` counts those that were passed on and run
    something, `answers` how many of them were answered.
    """

    def __init__(self) -> None:
        self.latency = 0.0
        self.requests = 0
        self.answers = 0
        self.held: set[Direction] = set()
        self.left: Final[dict[Direction, int]] = {}
        self.plans: list[Plan[R]] = []

    def drop_reply(self, when: When[R]) -> asyncio.Event:
        """Let a request be done, keep its answer, and reset the connection; the event tells when."""
        return self._plan(Plan(when, "drop reply"))

    def drop_request(self, when: When[R]) -> asyncio.Event:
        """Reset the connection in place of passing a request on."""
        return self._plan(Plan(when, "drop request"))

    def fail(self, when: When[R], error: str) -> asyncio.Event:
        """Let the server answer a request with this error in place of doing it; a transaction fails as by any error."""
        return self._plan(Plan(when, "fail", error))

    def cut_after(self, size: int, direction: Direction = "answers") -> None:
        """End the connection that brings byte number `size + 1` in this direction from now, before that byte."""
        self.left[direction] = size

    def planned(self, request: R) -> Plan[R] | None:
        """Return what is to be done to this request, once."""
        for plan in self.plans:
            if plan.meets(request):
                self.plans.remove(plan)
                return plan
        return None

    def passing(self, whole: bytes, direction: Direction) -> bytes:
        """Return what of `whole` passes: less than all of it once, where the connection is to be cut."""
        left = self.left.pop(direction, None)
        if left is None:
            return whole
        if left >= len(whole):
            self.left[direction] = left - len(whole)
        return whole[:left]

    def _plan(self, plan: Plan[R]) -> asyncio.Event:
        self.plans.append(plan)
        return plan.done
