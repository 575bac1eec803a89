"""`windlass serve` as a process of its own, as the campaigns start and kill it, with a token for whoever comes."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final, Self

from proofs.children import eventually
from proofs.commands import ROOT
from proofs.serving import SQLITE
from tests.redis.ports import free_port

HOST: Final = "127.0.0.1"
READY: Final = "/health/ready"
COMES_UP: Final = 60.0
TOKEN: Final = "WINDLASS_TOKEN"  # noqa: S105 - where it is found


class ServingProcess:
    """Serves a file of SQLite, or another store; after its end it can be started again, on the same port."""

    def __init__(self, folder: Path, store: str | None = None, **settings: str) -> None:
        """Take more `settings` for its environment: `WINDLASS_SERVICES="off"`."""
        self.file: Final = folder / "jobs.db"
        self._store: Final = store or f"{SQLITE}{self.file}"
        self.tokens: Final = folder / "tokens.toml"
        self._port: Final = free_port()
        self._settings = settings
        self._log: Final = folder / "serve-log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Return when it answers."""
        command = ["serve", self._store, "--bind", f"{HOST}:{self._port}", "--tokens", str(self.tokens)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "windlass", *command], cwd=ROOT, env={**os.environ, **self._settings}, stderr=log
            )
        if not eventually(self._answers, COMES_UP):
            message = f"it does not answer: {self._log.read_text()[-2_000:]}"
            raise RuntimeError(message)

    def stop(self) -> int:
        """Stop it gracefully; return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it by SIGKILL."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(60)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            message = f"windlass serve ended: {self._log.read_text()[-2_000:]}"
            raise RuntimeError(message)
        with suppress(OSError, HTTPException), closing(HTTPConnection(HOST, self._port, timeout=5)) as connection:
            connection.request("GET", READY)
            return connection.getresponse().status == HTTPStatus.OK
        return False


@contextmanager
def admitted(tokens: Path) -> Generator[None]:
    """Make a token that may do everything, and let this process and those that it starts have it."""
    made = subprocess.run(
        [sys.executable, "-m", "windlass", "token", "new", "--name", "proof", "--role", "admin", "--tokens", tokens],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    os.environ[TOKEN] = made.stdout.strip()
    try:
        yield
    finally:
        del os.environ[TOKEN]
