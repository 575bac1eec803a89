"""`windlass worker windlass.demo.app:app`, as a process of its own: started, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PROCESSES: Final = 2
COMMAND: Final = [
    *(sys.executable, "-m", "windlass", "worker", "windlass.demo.app:app"),
    *("--processes", str(PROCESSES)),
    *("--concurrency", "10"),
    *("--rescue-interval", "500ms"),
    *("--shutdown-timeout", "10s"),
]


class Trouble(Exception):
    """Something stood in the way of the story: it shows nothing, neither good nor bad."""


class WorkerCommand:
    """The command as it runs. It and the app here find their store and their ledger by the environment."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log
        self.stop = process.terminate
        """Let it stop gracefully."""

    def look(self) -> None:
        """Raise `Trouble` when the command has ended although nobody stopped it."""
        if self._process.poll() is not None:
            raise self._trouble("ended by itself")

    def ended_well(self, *, was_up: bool) -> bool:
        """Whether it has ended; raises `Trouble` when it stumbled."""
        code = self._process.poll()
        # before it is up, nothing in it takes the signal, which then ends it by itself
        if code and (was_up or code != -signal.SIGTERM):
            raise self._trouble("stopped")
        return code is not None

    def _trouble(self, what: str) -> Trouble:
        lines = self._log.read_text(errors="replace").splitlines() or ["it said nothing"]
        return Trouble(f"`windlass worker` {what} with {self._process.returncode}: {lines[-1]}")


@contextmanager
def worker_command(log: Path) -> Generator[WorkerCommand]:
    """Run the command and all of its child processes; whatever happens, none outlives the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            COMMAND,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            # A group of its own: a Ctrl-C at the terminal is for the narrator, who ends the command.
            process_group=0,
        )
    try:
        yield WorkerCommand(process, log)
    finally:
        # the group of the command, which nobody else is in; gone when it has ended well
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
