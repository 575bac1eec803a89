"""`windlass serve` before the files of a measurement's folder, started when its URL is asked for.

The folder keeps where it listens in a file, so that all processes of a measurement find the same one. It ends with the
process group of whoever was measured; a folder that is used again gets another one. The token, one for the whole run,
is in the environment.
"""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

TOKEN = "WINDLASS_TOKEN"  # noqa: S105 - where it is found
TOKENS = "BENCH_HTTP_TOKENS"
SAID = re.compile(r"serving at (http://\S+:(\d+))")
PATIENCE = 30.0
LOOK_EVERY = 0.01
HOST = "127.0.0.1"
TICKS = os.sysconf("SC_CLK_TCK")


class Serving(msgspec.Struct, frozen=True):
    """A process that serves: where it listens, and what it has needed so far."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        """The URL of its store."""
        return f"http://{HOST}:{self.port}"

    def lives(self) -> bool:
        """Tell whether it listens."""
        try:
            socket.create_connection((HOST, self.port), PATIENCE).close()
        except OSError:
            return False
        return True

    def peak_mib(self) -> float:
        """Return the most memory that it has held."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def processor_seconds(self) -> float:
        """Return the processor time of all of its threads."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS


def announce(folder: Path) -> None:
    """Make a token in the folder, and let this process and all that it starts have it."""
    tokens = folder / "tokens.toml"
    command = ["token", "new", "--name", "bench", "--role", "admin", "--tokens", str(tokens)]
    made = subprocess.run(
        [sys.executable, "-m", "windlass", *command], check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    os.environ[TOKEN] = made.stdout.strip()
    os.environ[TOKENS] = str(tokens)


def serving(folder: Path, name: str) -> Serving:
    """Return the process that serves the file of this name; it is started at the first call.

    Raises `ImportError` when no token was announced, so that a contestant counts as missing.
    """
    if TOKENS not in os.environ:
        raise ImportError("it needs a token: run with --store http")
    known = folder / f"{name}.serving"
    if known.exists():
        found = msgspec.json.decode(known.read_bytes(), type=Serving)
        if found.lives():
            return found
    started = _start(folder, name)
    known.write_bytes(msgspec.json.encode(started))
    return started


def _start(folder: Path, name: str) -> Serving:
    store, tokens = f"sqlite:///{folder / name}.db", os.environ[TOKENS]
    log = folder / f"{name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "serve", store, "--bind", f"{HOST}:0", "--tokens", tokens],
            stdin=subprocess.DEVNULL,
            # whoever waits for the end of the output of a process that started it would wait for this one's, too
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    until = time.monotonic() + PATIENCE
    while (found := SAID.search(log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > until:
            last_line = log.read_text().strip().rpartition("\n")[2]
            message = f"windlass serve did not come up: {last_line}"
            raise RuntimeError(message)
        time.sleep(LOOK_EVERY)
    return Serving(process.pid, int(found[2]))
