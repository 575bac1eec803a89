"""Recorders of the stores that hold jobs as records of Python: memory and SlateDB."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Any, Final

import pytest

from tests.slatedb.engine import begin_engine
from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Step
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import Table
from windlass.testing import FakeClock, SeededRng

_numbers: Final = count(1)


@dataclass
class PythonRecording:
    """Store whose table is watched."""

    store: Store
    found: list[Step] = field(default_factory=list[Step])

    async def steps(self) -> list[Step]:
        found, self.found[:] = [*self.found], []
        return found


@contextmanager
def watched_table(found: list[Step]) -> Generator[None]:
    """Note each step of every table for the time of a block."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (STARTS_WAITING, STARTS_RUNNING, STOPS_RUNNING, ENDS):
            patch.setattr(Table, name, _noted(name, getattr(Table, name), found))
        yield


def _noted(name: str, step: Callable[..., None], found: list[Step]) -> Callable[..., None]:
    @wraps(step)
    def noted(table: Table, record: Record, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the step has it
        found.append(Step(name, record.queue, record.kind, None if options.get("is_new") else record.state))
        step(table, record, *args, **options)

    return noted


def recorded_memory(clock: FakeClock) -> AbstractAsyncContextManager[PythonRecording]:
    return recorded("memory://", clock)


def recorded_slatedb(clock: FakeClock) -> AbstractAsyncContextManager[PythonRecording]:
    begin_engine()
    return recorded(f"slatedb+memory://steps-{next(_numbers)}", clock)


@asynccontextmanager
async def recorded(url: str, clock: FakeClock) -> AsyncGenerator[PythonRecording]:
    """Open a store, and note the steps of its jobs."""
    store = open_store(url, clock=clock, rng=SeededRng())
    recording = PythonRecording(store)
    with watched_table(recording.found):
        await store.open()
        yield recording
        await store.close()
