"""Runs one request in a process group of its own, bounded in time."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from benchmarks.measuring.child import Answer, Request

ROOT = Path(__file__).parent.parent.parent
PEERS = Path(sys.prefix) / "peers"
"""Environments of single contestants, inside of the one that runs this: not all peers agree on one driver's version."""


class MeasurementFailed(Exception):
    """A child process ended without an answer."""

    def __init__(self, request: Request, reason: str) -> None:
        """Say what was asked and what became of it."""
        super().__init__(f"{request.measurement or request.action} of {request.contestant}: {reason}")
        self.reason = reason


def ask(request: Request, *, answer: Path, seconds: float) -> Answer:
    """Return the child's answer, which it writes to the file `answer`.

    Raises `MeasurementFailed` with the child's last word when it fails or takes longer than `seconds`. No process that
    it started outlives the call, however the call ends.
    """
    command = [
        _interpreter_of(request.contestant),
        "-m",
        "benchmarks.measuring.child",
        msgspec.json.encode(request).decode(),
        str(answer),
    ]
    with TemporaryFile("w+") as said:
        # a session of its own: what the child starts is in its group, and ends with it
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(request, f"no answer within {seconds:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if code != 0:
            said.seek(0)
            last_line = said.read().strip().rpartition("\n")[2]
            raise MeasurementFailed(request, last_line or f"exit code {code}")
    return msgspec.json.decode(answer.read_bytes(), type=Answer)


def _environment() -> dict[str, str]:
    """Return ours, with bytecode kept: compiling all that is loaded would count as memory and as time of the start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _interpreter_of(contestant: str) -> str:
    own = PEERS / contestant / "bin" / "python"
    return str(own) if own.exists() else sys.executable
