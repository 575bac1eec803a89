"""A real `windlass serve` or `windlass dashboard` process, started and stopped by a test."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from proofs.children import eventually

PATIENCE = 20.0


class Served:
    """`windlass serve` in a folder of its own, on any port that is free."""

    COMMAND: ClassVar = "serve"
    SAYS: ClassVar = r"serving at (\S+)"

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self._folder = folder
        self._arguments = arguments
        # nothing of whoever runs the tests reaches in
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
        self._environment = {**clean, **(environment or {})}
        self._log = folder / f"{self.COMMAND}.log"
        self.url = ""

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "windlass", self.COMMAND, *self._arguments, "--bind", "127.0.0.1:0"],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        try:
            assert eventually(
                lambda: re.search(self.SAYS, self.log) is not None or self.process.poll() is not None, PATIENCE
            ), self.log
            found = re.search(self.SAYS, self.log)
            assert found is not None, self.log
        except BaseException:
            self.kill()
            raise
        self.url = found[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text()

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)

    def call(self, path: str, body: object = None, *, token: str | None = None) -> Any:  # noqa: ANN401 - whatever it answers
        """Call one operation, as a program in any language would."""
        request = urllib.request.Request(f"{self.url}{path}")  # noqa: S310 - of the process that was started here
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310 - as above
            return json.loads(reply.read())


class Shown(Served):
    """`windlass dashboard` in a folder of its own, on any port that is free."""

    COMMAND: ClassVar = "dashboard"
    SAYS: ClassVar = r"the dashboard is at (\S+)/"
