"""One process of Redis's, as a server or as a sentinel, that a test alone starts, stops, kills and starts again."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.redis import binaries
from tests.redis.asking import Word, ask
from tests.redis.ports import free_port
from tests.redis.starting import CONF, PID, command, wait_until_it_answers
from tests.servers import run
from tests.servers.private import PATIENCE, Private


class Process(Private):
    """A process on a port and with data of its own, which stay the same from start to start.

    As a context manager it is started, and in the end killed and removed; the end of the test's process removes it too,
    however that comes. `lines` are what its configuration file holds at first: a process may write to that, as
    sentinels do and let servers do. What `conf` holds goes over it at each start.
    """

    def __init__(
        self, *, program: Path | None, conf: Mapping[str, str], lines: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> None:
        super().__init__("windlass-redis-")
        self.program: Final = program or binaries.program()
        self.conf: Final = dict(conf)
        self.port: Final = free_port()
        self.log: Final = self.folder / "log"
        self._flags: Final = flags
        (self.folder / CONF).write_text("".join(f"{line}\n" for line in lines))

    @property
    def url(self) -> str:
        """Where it is, without a prefix."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process itself, not its guard."""
        return int((self.folder / PID).read_text())

    def ask(self, name: str, *words: Word) -> Any:  # noqa: ANN401 - each command has its own
        """Return what one command brings."""
        return ask(self.url, name, *words)

    def start(self) -> None:
        """Start it, and return when it answers: all of its data are there by then."""
        assert not self.runs
        whole = command(self.program, self.folder, self.port, self.conf, flags=self._flags)
        with self.log.open("w") as log:
            self._guard = subprocess.Popen(
                run.guarded(whole, self.folder, pid=os.getpid(), user=run.WHOEVER, kill=True),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until_it_answers(self.url, self.log, alive=lambda: self.runs)

    def stop(self) -> None:
        """Stop it as a service is stopped: what its settings promise to keep is written before it ends."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again."""
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        assert self._guard is not None
        assert self.runs
        os.kill(self.pid, how)
        self._guard.wait(PATIENCE)
