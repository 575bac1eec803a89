"""The worker processes, seen from outside: started, killed, paused, resumed and stopped, and no other process."""

import os
import signal
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

import msgspec

from examples.demo.worker import Order

ROOT: Final = Path(__file__).resolve().parents[2]


class Life(StrEnum):
    WORKING = "working"
    KILLED = "killed"
    PAUSED = "paused"
    STOPPED = "stopped"


class Trouble(Exception):
    """Something stood in the way of the story: it shows nothing, neither good nor bad."""


class Crew:
    """All workers of one run; whatever happens, none outlives it."""

    def __init__(self, folder: Path, *, url: str, ledger: Path, removed: str | None) -> None:
        self._folder = folder
        self._url = url
        self._ledger = ledger
        self._removed = removed
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.lives: dict[str, Life] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def start(self) -> str:
        """Start one more worker; return its name."""
        name = f"worker-{len(self._processes) + 1}"
        order = Order(name, self._url, str(self._ledger), self._removed)
        command = [sys.executable, "-m", "examples.demo.worker", msgspec.json.encode(order).decode()]
        with self._log(name).open("wb") as log:
            # A group of its own: a Ctrl-C at the terminal is for the narrator, who ends the workers.
            self._processes[name] = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )
        self.lives[name] = Life.WORKING
        return name

    def kill(self, name: str) -> None:
        """Kill a worker with SIGKILL, and return when it is dead."""
        self._processes[name].kill()
        self._processes[name].wait()
        self.lives[name] = Life.KILLED

    def pause(self, name: str) -> None:
        os.kill(self._processes[name].pid, signal.SIGSTOP)
        self.lives[name] = Life.PAUSED

    def resume(self, name: str) -> None:
        os.kill(self._processes[name].pid, signal.SIGCONT)
        self.lives[name] = Life.WORKING

    def look(self) -> None:
        """Raise `Trouble` when a worker has ended that nobody ended."""
        for name in self._alive():
            if (code := self._processes[name].poll()) is not None:
                raise Trouble(f"{name} ended by itself with {code}: {self._last_line(name)}")

    def stop(self) -> None:
        """Ask every worker to settle what it holds and stop."""
        for name in self._alive():
            self._processes[name].terminate()
            self.lives[name] = Life.STOPPED

    def stopped(self) -> bool:
        """Whether all who were asked have stopped; raises `Trouble` when one stumbled."""
        asked = [name for name, life in self.lives.items() if life is Life.STOPPED]
        codes = {name: self._processes[name].poll() for name in asked}
        for name, code in codes.items():
            if code:
                raise Trouble(f"{name} stopped with {code}: {self._last_line(name)}")
        return None not in codes.values()

    def _alive(self) -> list[str]:
        return [name for name, life in self.lives.items() if life in (Life.WORKING, Life.PAUSED)]

    def _last_line(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"
