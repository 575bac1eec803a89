"""`windlass worker windlass.demo.app:app`, as a process of its own: started, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

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
    """The command and all of its child processes; whatever happens, none outlives the block.

    They find their store and their ledger by the environment, as the app does here.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            # A group of its own: a Ctrl-C at the terminal is for the narrator, who ends the command.
            self._process = subprocess.Popen(
                COMMAND,
                cwd=self._log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        # the group of the command, which nobody else is in; gone when it has ended well
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def look(self) -> None:
        """Raise `Trouble` when the command has ended although nobody stopped it."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise Trouble(f"`windlass worker` ended by itself {self._how()}")

    def stop(self) -> None:
        """Let it stop gracefully."""
        assert self._process is not None
        self._process.terminate()

    def ended_well(self, *, was_up: bool) -> bool:
        """Whether it has ended; raises `Trouble` when it stumbled."""
        assert self._process is not None
        code = self._process.poll()
        # before it is up, nothing in it takes the signal, which then ends it by itself
        if code and (was_up or code != -signal.SIGTERM):
            raise Trouble(f"`windlass worker` stopped {self._how()}")
        return code is not None

    def _how(self) -> str:
        assert self._process is not None
        lines = self._log.read_text(errors="replace").splitlines()
        return f"with {self._process.returncode}: {lines[-1] if lines else 'it said nothing'}"
