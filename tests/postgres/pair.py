"""Two Postgres servers, one of which streams from the other and takes over from it, again and again."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, LiteralString

import psycopg
from psycopg import sql

from tests.postgres.private import PrivateCluster
from tests.servers.private import Started
from tests.servers.run import NOBODY

STANDBY: Final = "standby"
"""What the standby is called, to the primary and for its slot there."""
_STREAMING: Final[Mapping[str, str]] = {
    "synchronous_commit": "on",
    # without these two a server that was ahead cannot be taken back to where the other one took over
    "full_page_writes": "on",
    "wal_log_hints": "on",
    "wal_keep_size": "512MB",
    "wal_retrieve_retry_interval": "100ms",
}
_PATIENCE: Final = 60.0
_READ_ONLY: Final = "default_transaction_read_only"
_CAUGHT_UP: Final = """
select 1 from pg_stat_replication
where application_name = %s and state = 'streaming' and flush_lsn >= %s::pg_lsn and (sync_state = 'sync' or not %s)
"""


class Pair(Started):
    """A primary and its standby; as a context manager both are started, and in the end stopped and removed.

    With `synchronous` a commit is acknowledged when the standby has it on its disk, once the standby has caught up. A
    primary that is alone waits for nobody, as under most failover managers, so that nobody may take over before that
    moment: `join` returns when it has come.
    """

    def __init__(self, *, synchronous: bool, conf: Mapping[str, str] | None = None) -> None:
        self.synchronous: Final = synchronous
        self.primary = PrivateCluster(conf={**(conf or {}), **_STREAMING})
        self.standby = PrivateCluster(programs=self.primary.programs, conf={**(conf or {}), **_STREAMING})
        self._both: Final = (self.primary, self.standby)
        self._running: set[PrivateCluster] = set()

    @property
    def url(self) -> str:
        """Where both are, without a schema; the order stays the same, whoever is the primary."""
        return url_of(*self._both)

    def start(self) -> None:
        """Start the primary, and the standby on a copy of it."""
        with (data_of(self.primary) / "postgresql.conf").open("a") as conf:
            # also for the tool that takes a server back, which starts it by itself
            conf.write("wal_log_hints = on\n")
        self._start(self.primary)
        shutil.rmtree(data_of(self.standby))
        _run(self.standby, "pg_basebackup", "-D", data_of(self.standby), "-d", _dsn(self.primary), "-c", "fast", "-N")
        self._make_slot()
        self._follow()

    def fence(self, mode: Literal["immediate", "kill"] = "immediate") -> None:
        """End the primary without a warning: stopped in a hurry, or all its processes killed as by a power cut."""
        self._running.discard(self.primary)
        if mode == "immediate":
            self.primary.stop("immediate")
            return
        pids = [
            pid for (pid,) in run_on(self.primary, "select pid from pg_stat_activity where pid <> pg_backend_pid()")
        ]
        self.primary.kill()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def refuse_writes(self) -> None:
        """Let the primary refuse them from now on; sessions stay, and what is under way in a transaction may end."""
        self._set(_READ_ONLY, "on")

    def catch_up(self) -> None:
        """Return when the standby has all that was committed until now."""
        self._catch_up(synchronous=False)

    def part(self) -> None:
        """Let the standby receive nothing more."""
        _write_settings(self.standby, {})
        run_on(self.standby, "select pg_reload_conf()")
        _until(lambda: not run_on(self.standby, "select 1 from pg_stat_wal_receiver"), "the standby still receives")

    def promote(self) -> float:
        """Let the standby take over, and return since when it takes writes, by the monotonic clock.

        The primary, which is to be fenced before, is `standby` from now on.
        """
        run_on(self.standby, "select pg_promote(false)")
        _until(
            lambda: run_on(self.standby, "select pg_is_in_recovery()") == [(False,)], "the standby does not take over"
        )
        took_over_at = time.monotonic()
        self.primary, self.standby = self.standby, self.primary
        self._make_slot()
        return took_over_at

    def return_read_only(self) -> None:
        """Start the old primary as it was when it ended, but for writes, which it refuses."""
        self.standby.conf[_READ_ONLY] = "on"
        self._start(self.standby)

    def join(self) -> None:
        """Let the old primary follow the new one, in whatever state it is; return when it has caught up."""
        if self.standby in self._running:
            self.standby.stop("immediate")
        self.standby.conf.pop(_READ_ONLY, None)
        # what the tool compares is in the file that a checkpoint writes
        run_on(self.primary, "checkpoint")
        _run(self.standby, "pg_rewind", "-D", data_of(self.standby), f"--source-server={_dsn(self.primary)}", "-N")
        shutil.rmtree(data_of(self.standby) / "pg_replslot" / STANDBY, ignore_errors=True)
        self._follow()

    def close(self) -> None:
        """Stop both, where they run, and remove their data."""
        for each in self._both:
            each.close()

    def _start(self, server: PrivateCluster) -> None:
        server.start()
        self._running.add(server)

    def _make_slot(self) -> None:
        run_on(self.primary, "select pg_create_physical_replication_slot(%s, true)", STANDBY)

    def _follow(self) -> None:
        """Start the standby, and return when it has all that was ever acknowledged."""
        _write_settings(
            self.standby,
            {
                "primary_conninfo": f"{_dsn(self.primary)} application_name={STANDBY}",
                "primary_slot_name": STANDBY,
            },
        )
        (data_of(self.standby) / "standby.signal").touch()
        self._start(self.standby)
        self.catch_up()
        if self.synchronous:
            self._set("synchronous_standby_names", STANDBY)
            # whether commits wait is known to all when the checkpointer has heard of it, which it does before its work
            run_on(self.primary, "checkpoint")
            self._catch_up(synchronous=True)

    def _catch_up(self, *, synchronous: bool) -> None:
        [(flushed,)] = run_on(self.primary, "select pg_current_wal_flush_lsn()::text")
        _until(
            lambda: bool(run_on(self.primary, _CAUGHT_UP, STANDBY, flushed, synchronous)),
            "the standby does not catch up",
        )

    def _set(self, name: str, value: str) -> None:
        """Change a setting of the primary for all its sessions, and return when all have been told."""
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            connection.execute("set default_transaction_read_only = off")
            connection.execute(sql.SQL("alter system set {} = {}").format(sql.Identifier(name), value))
            connection.execute("select pg_reload_conf()")
        # a new session has the settings of the first process, which tells all others before it takes that session
        _until(
            lambda: run_on(self.primary, "select current_setting(%s)", name) == [(value,)],
            f"{name} is not {value}",
        )


def url_of(*servers: PrivateCluster) -> str:
    """Return a URL that names all of them, in this order, and no schema."""
    return f"postgres://postgres@{','.join(f'127.0.0.1:{each.port}' for each in servers)}/postgres"


def data_of(server: PrivateCluster) -> Path:
    """Return where its data are."""
    return server.folder / "data"


def run_on(server: PrivateCluster, statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement, not in a transaction, in a session of its own."""
    with psycopg.connect(server.url, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def _dsn(server: PrivateCluster) -> str:
    return f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"


def _write_settings(server: PrivateCluster, settings: Mapping[str, str]) -> None:
    lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
    (data_of(server) / "postgresql.auto.conf").write_text("".join(lines))


def _run(server: PrivateCluster, program: str, *arguments: str | Path) -> None:
    """Run a program of Postgres as the user who owns the data."""
    user, groups = (None, None) if NOBODY == "-" else (NOBODY, list[str | int]())
    done = subprocess.run(
        [server.programs / program, *arguments],
        cwd=server.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
        user=user,
        group=None if NOBODY == "-" else pwd.getpwnam(NOBODY).pw_gid,
        extra_groups=groups,
    )
    if done.returncode:
        message = f"{program} failed: {done.stdout}{done.stderr}"
        raise RuntimeError(message)


def _until(true: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + _PATIENCE
    while not true():
        if time.monotonic() > until:
            raise RuntimeError(otherwise)
        time.sleep(0.01)
