"""`windlass worker` as users start it."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

COMMAND = ("-m", "windlass", "worker", "benchmarks.servers.worker_app:app")
READY = b" ready: "
PATIENCE = 30.0


@contextmanager
def working(url: str, *, processes: int) -> Generator[None]:
    """Start the command; all its processes work when the block is entered, and have stopped when it is left."""
    command = [sys.executable, *COMMAND, "--processes", str(processes)]
    process = subprocess.Popen(command, env={**os.environ, "WINDLASS_URL": url}, stderr=subprocess.PIPE)
    try:
        _wait_until_ready(process)
        yield
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()


def _wait_until_ready(process: "subprocess.Popen[bytes]") -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if READY in line:
            return
    message = "windlass worker ended before it was ready"
    raise RuntimeError(message)
