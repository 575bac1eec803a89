"""A Postgres for one test alone, to be stopped, killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from tests.postgres import binaries
from tests.postgres.cluster import Cluster, cluster
from tests.postgres.server import QUICK, command, free_port, make_data, wait_until_it_answers
from tests.servers import run
from tests.servers.private import PATIENCE, Private

DURABLE: Final[Mapping[str, str]] = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
"""The settings of a Postgres that keeps what it has committed, whatever happens."""

_SIGNALS: Final = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PrivateCluster(Private):
    """A Postgres on a port and data of its own, which stay the same from start to start.

    As a context manager it is started, and in the end stopped and removed; the process's end removes it too, however
    that comes. `programs` is the folder of another Postgres's programs, `conf` goes over the settings for quick tests.
    """

    def __init__(self, *, programs: Path | None = None, conf: Mapping[str, str] | None = None) -> None:
        super().__init__("windlass-private-")
        self.programs: Final = programs or cluster().programs or binaries.of_the_wheel(self.folder)
        self.conf: Final = {**QUICK, **(conf or {})}
        self.port: Final = free_port()
        self.log: Final = self.folder / "log"
        self._data: Final = make_data(self.programs, self.folder)

    @property
    def url(self) -> str:
        """Where it is, without a schema."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """The process that all others of the server come from."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def as_cluster(self) -> Cluster:
        """Return it in the form of the run's cluster, for its schemas; it must be running."""
        return Cluster(self.url, self.programs, self.log)

    def start(self) -> None:
        """Start it, and return when it answers."""
        until = time.monotonic() + PATIENCE
        while not self._started():
            # what a killed server leaves behind ends by itself, but not at once
            if "is still in use" not in self.log.read_text() or time.monotonic() > until:
                message = f"Postgres did not start: {self.log.read_text()}"
                raise RuntimeError(message)
            time.sleep(0.05)

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop it as `pg_ctl stop` does: `smart` waits for sessions, `immediate` leaves all to recovery."""
        os.kill(self.pid, _SIGNALS[mode])
        self._wait()

    def kill(self) -> None:
        """Kill the first process of the server with SIGKILL; its sessions end as soon as they notice."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def _started(self) -> bool:
        whole = command(self.programs, self._data, self.port, self.conf)
        with self.log.open("w") as log:
            guard = self._guard = subprocess.Popen(
                [sys.executable, "-I", run.GUARD, str(os.getpid()), self.folder, run.NOBODY, *whole],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until_it_answers(self.url, self.log, alive=lambda: guard.poll() is None)
        except RuntimeError:
            if guard.poll() is None:
                raise
            self._guard = None
            return False
        return True

    def _wait(self) -> None:
        assert self._guard is not None
        self._guard.wait(PATIENCE)
        self._guard = None
