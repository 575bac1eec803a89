"""A PgBouncer in transaction mode for one test alone, before a Postgres of its own, to be killed and started again."""

import os
import signal
import subprocess
from typing import Final

from tests.postgres.pgbouncer import PGBOUNCER
from tests.postgres.private import PrivateCluster
from tests.postgres.server import free_port, hand_over, wait_until_it_answers
from tests.servers import run
from tests.servers.private import PATIENCE, Private

# one that has missed its Postgres would let nobody in for 15 s
_CONF: Final = """\
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pidfile = {pid}
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
server_login_retry = 1
"""


class PrivatePgBouncer(Private):
    """A pool on a port of its own, which stays the same from start to start; its Postgres must run when it starts.

    As a context manager it is started, and in the end killed and removed.
    """

    def __init__(self, cluster: PrivateCluster) -> None:
        assert PGBOUNCER is not None, "PgBouncer is not installed: apt-get install pgbouncer"
        super().__init__("windlass-pgbouncer-")
        self.url: Final = f"postgres://postgres@127.0.0.1:{(port := free_port())}/postgres"
        self._log: Final = self.folder / "log"
        self._pid: Final = self.folder / "pid"
        self._conf: Final = self.folder / "pgbouncer.ini"
        users = self.folder / "users"
        users.write_text('"postgres" ""\n')
        self._conf.write_text(_CONF.format(server=cluster.port, port=port, users=users, pid=self._pid))
        self._log.touch()
        hand_over(self.folder)

    @property
    def pid(self) -> int:
        """The pool itself, not its guard."""
        return int(self._pid.read_text())

    def start(self) -> None:
        """Start it, and return when Postgres answers through it."""
        assert PGBOUNCER is not None
        assert not self.runs
        # what a killed one leaves behind would keep the next one from starting
        self._pid.unlink(missing_ok=True)
        with self._log.open("a") as log:
            self._guard = subprocess.Popen(
                run.guarded([PGBOUNCER, self._conf], self.folder, pid=os.getpid(), user=run.NOBODY, kill=True),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until_it_answers(self.url, self._log, alive=lambda: self.runs)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._guard is not None
        os.kill(self.pid, signal.SIGKILL)
        self._guard.wait(PATIENCE)
