"""Processes of a campaign: started fresh, waited for with a bound, and none outlives its campaign."""

import asyncio
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Coroutine
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self

from proofs.ledger import Ledger

P = ParamSpec("P")
SPAWN = multiprocessing.get_context("spawn")
POLL = 0.005
MOST_TOLD = 2_000


class Children:
    """The processes of one campaign; those that still run at its end are killed."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._processes: list[SpawnProcess] = []

    def start(
        self,
        name: str,
        work: Callable[Concatenate[Ledger, P], Coroutine[Any, Any, None]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> SpawnProcess:
        """Run `work` in a fresh interpreter, with a ledger of its own to write to."""
        # not a daemon: those may not start processes, and servers do
        process = SPAWN.Process(target=_live, args=(self._ledger, name, work, args, kwargs), name=name)
        process.start()
        self._processes.append(process)
        return process

    def wait(self, seconds: float) -> list[str]:
        """Wait for all; return the names of those that did not end well in time."""
        until = time.monotonic() + seconds
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
        return [f"{process.name}: exit code {process.exitcode}" for process in self._processes if process.exitcode != 0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()
        for process in self._processes:
            process.join(10)
            process.close()


def eventually(true: Callable[[], object], seconds: float = 30.0, every: float = POLL) -> bool:
    """Wait until `true()`, at most `seconds`; return whether it came true."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(every)
    return True


def stand_still(pid: int) -> None:
    """Stop a process by SIGSTOP, until SIGCONT; return when none of its threads runs."""
    os.kill(pid, signal.SIGSTOP)
    # T: stopped; Z and X: it has ended meanwhile
    eventually(lambda: state_of(pid) in "TZX")


def go_on(pid: int) -> None:
    """Let a process go on that was stopped."""
    os.kill(pid, signal.SIGCONT)


def state_of(pid: int) -> str:
    """Return the letter by which the system tells what a process does; that of one which is gone is X."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "X"
    return status.rpartition(")")[2].split()[0]


def _live(
    path: Path,
    name: str,
    work: Callable[..., Coroutine[Any, Any, None]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    ledger = Ledger(path, name)
    try:
        asyncio.run(work(ledger, *args, **kwargs))
    except BaseException as error:
        ledger.write("error", note="".join(traceback.format_exception(error))[-MOST_TOLD:])
        raise
