"""`windlass worker` as a process of its own, as the campaigns start and stop it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from proofs.serving import Place, lives

ROOT = Path(__file__).resolve().parent.parent
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})


class Command:
    """A worker of the campaigns' app, or of another one; at the end of the block none of its processes is left."""

    def __init__(
        self,
        place: Place,
        options: Sequence[str],
        *,
        max_attempts: int = 3,
        name: str = "child",
        app: str = "proofs.served:app",
        more: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Give it `more` in its environment than every campaign does."""
        settings = {
            "PROOF_STORE": place.url,
            "PROOF_LEDGER": str(place.ledger),
            "PROOF_PROCESS": f"{name} PID",
            "PROOF_ATTEMPTS": str(max_attempts),
            **more,
        }
        self._log = place.ledger.with_name("log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "worker", app, "--log-level", "error", *options],
            cwd=ROOT,
            env={**os.environ, **settings},
            stderr=self._log,
        )
        self.children: set[int] = set()

    def stop(self, grace: float, most: float = 30.0) -> tuple[int | None, float]:
        """Send SIGTERM; return the exit code, None when it did not end, and how long it took beyond the grace."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(grace + most)
        except subprocess.TimeoutExpired:
            code = None
        return code, time.monotonic() - began - grace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self._log.close()
        for pid in self.children:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
