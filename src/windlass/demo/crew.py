"""The servers that `windlass worker` runs, one in each child process: who they are, and what is done to them."""

import os
import signal
import time
from contextlib import suppress
from enum import StrEnum

from windlass.core.looks import ServerRecord
from windlass.demo.ledger import Event, Ledger, What


class Life(StrEnum):
    WORKING = "working"
    KILLED = "killed"
    POISONED = "poisoned"
    PAUSED = "paused"
    STOPPED = "stopped"


class Crew:
    """All servers of one run, each with a name for people."""

    def __init__(self, pen: Ledger) -> None:
        self._pen = pen
        self._pids: dict[str, int] = {}
        self.lives: dict[str, Life] = {}

    def meet(self, records: list[ServerRecord]) -> None:
        """Take in who is there, and who is not any more."""
        for id in set(self.working()) - {record.id for record in records}:
            self._end(id)
        for record in records:
            if record.id not in self.lives:
                self._pids[record.id] = record.pid
                self.lives[record.id] = Life.WORKING
                self._pen.write(Event(What.UP, record.id, at=record.started_at.timestamp()))

    def working(self) -> list[str]:
        return [id for id, life in self.lives.items() if life is Life.WORKING]

    def name(self, id: str) -> str:
        return f"server {list(self.lives).index(id) + 1}" if id in self.lives else "a server"

    def kill(self, id: str) -> float:
        """Kill a server with SIGKILL; return when, as Unix time."""
        return self._send(id, signal.SIGKILL, What.KILLED, Life.KILLED)

    def pause(self, id: str) -> None:
        self._send(id, signal.SIGSTOP, What.PAUSED, Life.PAUSED)

    def resume(self, id: str) -> None:
        self._send(id, signal.SIGCONT, What.RESUMED, Life.WORKING)

    def stop(self) -> None:
        """Resume who is paused, so that all can stop; the command tells them to."""
        for id, life in list(self.lives.items()):
            if life is Life.PAUSED:
                self.resume(id)
        for id in self.working():
            self._end(id)

    def _end(self, id: str) -> None:
        self._pen.write(Event(What.STOPPED, id))
        self.lives[id] = Life.STOPPED

    def _send(self, id: str, sent: signal.Signals, what: What, life: Life) -> float:
        sent_at = time.time()
        # first, because what follows from it may be written by others at once
        self._pen.write(Event(what, id, at=sent_at))
        with suppress(ProcessLookupError):
            os.kill(self._pids[id], sent)
        self.lives[id] = life
        return sent_at
