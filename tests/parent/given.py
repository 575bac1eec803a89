"""`windlass worker` as a process of its own, in a folder of its own."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import windlass
from proofs.children import eventually
from proofs.serving import lives

TASKS = Path(__file__).with_name("tasks.py")
SECONDS = 20.0


class Running:
    """A worker that was started; at the end of the block nothing of it is left."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        app: str = "tasks:app",
        environment: Mapping[str, str] | None = None,
        wrapper: tuple[str, ...] = (),
        launcher: tuple[str, ...] = (),
        hangup: signal.Handlers = signal.SIG_DFL,
        stderr: int | None = None,
    ) -> None:
        self.folder = folder
        if not (folder / "tasks.py").exists():
            shutil.copy(TASKS, folder / "tasks.py")
        self._log = (folder / "log").open("ab")
        command = [
            *launcher,
            sys.executable,
            *(wrapper or ("-m", "windlass")),
            "worker",
            *([app] if app else []),
            *arguments,
        ]
        # inherited by the worker; there may be a nohup around the tests
        former = signal.signal(signal.SIGHUP, hangup)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**clean_environment(), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=self._log if stderr is None else stderr,
            start_new_session=True,
        )
        signal.signal(signal.SIGHUP, former)
        self._seen: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.children()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=SECONDS)
        self._log.close()
        for pid in self._seen:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def records(self) -> list[dict[str, Any]]:
        """What a log in JSON says."""
        return [json.loads(line) for line in self.log().splitlines()]

    def notes(self) -> list[tuple[str, int]]:
        """What handlers noted, with the process that they ran in."""
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(what, int(pid)) for what, pid in (line.split() for line in lines)]

    def noted(self, what: str, times: int = 1) -> int:
        """Wait until a handler has noted this, and return the process of the last."""
        assert eventually(lambda: sum(note == what for note, _ in self.notes()) >= times, SECONDS), self.log()
        return [pid for note, pid in self.notes() if note == what][times - 1]

    def says(self, text: str, times: int = 1) -> None:
        """Wait until the log has this."""
        assert eventually(lambda: self.log().count(text) >= times, SECONDS), self.log()

    def exists(self, name: str) -> None:
        """Wait until a handler has made this file."""
        assert eventually((self.folder / name).exists, SECONDS), self.log()

    def children(self) -> list[int]:
        """The children that live."""
        found = [pid for pid in _processes() if _parent(pid) == self.process.pid and lives(pid)]
        self._seen.update(found)
        return found

    def signal(self, number: signal.Signals) -> float:
        """Send a signal to the parent alone, and return when."""
        self.children()
        sent_at = time.monotonic()
        self.process.send_signal(number)
        return sent_at

    def ends(self) -> int:
        """Wait for its end; return the exit code. Nothing is left of it then."""
        code = self.process.wait(SECONDS)
        assert eventually(lambda: not any(map(lives, self._seen)), 5)
        return code


def clean_environment() -> dict[str, str]:
    """The environment without settings of ours or of how an interpreter writes; warnings are errors, as always."""
    ours = {name for name in os.environ if name.startswith("WINDLASS_")} | {"PYTHONUNBUFFERED"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return {**environment, "PYTHONWARNINGS": "error"}


def enqueue(folder: Path, kind: str, arguments: Mapping[str, object] | None = None, *, times: int = 1) -> list[str]:
    with windlass.connect_sync(f"sqlite:///{folder}/jobs.db") as client:
        return [client.enqueue("default", dict(arguments or {}), kind=kind).id for _ in range(times)]


def jobs(folder: Path) -> list[tuple[str, int, int]]:
    """State, attempt and delivery of every job."""
    with closing(sqlite3.connect(folder / "jobs.db")) as connection:
        return connection.execute("select state, attempt, delivery from windlass_job order by seq").fetchall()


def servers(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "jobs.db")) as connection:
        return [row[0] for row in connection.execute("select id from windlass_server")]


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int:
    try:
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
