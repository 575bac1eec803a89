"""The parts of starting a Postgres: a fresh data folder, a command, a free port, a wait until it answers."""

import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import psycopg

from tests.servers.run import NOBODY

QUICK: Final[Mapping[str, str]] = {
    # a test's database need not outlive its machine
    "fsync": "off",
    # costs nothing then, and a session that waits for its commits no longer can be told from others
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # whoever forgets that a session has a time zone is found out
    "timezone": "Asia/Kathmandu",
}
_PATIENCE: Final = 60.0
_GROUP: Final = None if NOBODY == "-" else pwd.getpwnam(NOBODY).pw_gid


def make_data(programs: Path, folder: Path) -> Path:
    """Make an empty cluster in `folder`, with a superuser `postgres` without a password; return where its data are."""
    hand_over(folder)
    data = folder / "data"
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    user, groups = (None, None) if NOBODY == "-" else (NOBODY, list[str | int]())
    made = subprocess.run(
        [programs / "initdb", "-D", data, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=_GROUP,
        extra_groups=groups,
    )
    if made.returncode:
        message = f"initdb failed: {made.stderr}"
        raise RuntimeError(message)
    return data


def command(programs: Path, data: Path, port: int, conf: Mapping[str, str]) -> list[str]:
    """Return the command that runs Postgres on `data`."""
    settings = [part for name, value in conf.items() for part in ("-c", f"{name}={value}")]
    places = ["-D", str(data), "-k", str(data.parent), "-h", "127.0.0.1", "-p", str(port)]
    return [str(programs / "postgres"), *places, *settings]


def hand_over(folder: Path) -> None:
    """Give `folder` to the user who runs servers."""
    if NOBODY != "-":
        shutil.chown(folder, NOBODY, _GROUP)


def free_port() -> int:
    """Return a port that nobody listened on a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_until_it_answers(url: str, log: Path, *, alive: Callable[[], bool]) -> None:
    """Return when a connection can be made; raises with the server's log when it has ended or never answers."""
    until = time.monotonic() + _PATIENCE
    while True:
        # asked before: what lives now may have ended when the connection is refused
        lives = alive()
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if not lives or time.monotonic() > until:
                message = f"the server did not start ({error}); its log: {log.read_text() if log.exists() else 'none'}"
                raise RuntimeError(message) from error
            time.sleep(0.02)
        else:
            return
