"""Recorders: which of the four steps of a store ran, for which job."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypeAlias

from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing import FakeClock

STARTS_WAITING, STARTS_RUNNING = "starts_waiting", "starts_running"
STOPS_RUNNING, ENDS = "stops_running", "ends"


class Step(NamedTuple):
    """One step of one job; `old` is the state before the call, None for a job that was not there."""

    name: str
    queue: str
    kind: str | None
    old: State | None


class Recording(Protocol):
    """An open, empty store whose steps are recorded."""

    @property
    def store(self) -> Store: ...

    async def steps(self) -> list[Step]:
        """Return the steps since the last call of this method, those of one job in their order."""
        ...


Recorder: TypeAlias = Callable[[FakeClock], AbstractAsyncContextManager[Recording]]
