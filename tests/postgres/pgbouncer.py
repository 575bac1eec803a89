"""A PgBouncer in transaction mode in front of the run's Postgres, as Debian brings it; one for the whole run."""

import os
import shutil
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import pytest

from tests.postgres.cluster import GIVEN, cluster
from tests.postgres.roles import POOLED, POOLED_RUN, RUN, user_of
from tests.postgres.server import free_port, hand_over, wait_until_it_answers
from tests.servers import run

PGBOUNCER: Final = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
"""The program, where it is installed."""

# Few sessions for many clients, so that two transactions of one client are seldom in the same session. A pool that does
# not know a parameter of a new session refuses it, as it does where nobody has changed that.
_CONF: Final = """\
[databases]
* = {server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = {login}
auth_file = {users}
pool_mode = transaction
default_pool_size = 10
max_client_conn = 1000
"""


def through_pgbouncer(url: str) -> str:
    """Return a URL of the run's Postgres so that it leads through PgBouncer; skip the test where there is none.

    The role has as many rights as that of `url`, but is another one; in a given server it is that of the run's URL.
    """
    skip_without_pgbouncer()
    port = int(run.shared("pgbouncer", _start))
    parts = urlsplit(url)
    login = POOLED_RUN if user_of(url) == RUN else POOLED
    return parts._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()


def skip_without_pgbouncer() -> None:
    """Skip the test when PgBouncer is not installed; in CI that is a failure unless it could not be installed there."""
    if PGBOUNCER is not None:
        return
    reason = os.environ.get("WINDLASS_TEST_NO_PGBOUNCER", "")
    if "WINDLASS_CI" in os.environ and not reason:
        pytest.fail("PgBouncer is not installed: CI runs what goes through it")
    pytest.skip(f"PgBouncer is not installed: {reason or 'apt-get install pgbouncer'}")


def _start(folder: Path) -> str:
    assert PGBOUNCER is not None
    hand_over(folder)
    port, log = free_port(), folder / "log"
    server = urlsplit(cluster().url)
    if not GIVEN:
        # whoever comes goes on under the same name
        server = server._replace(netloc=server.netloc.rpartition("@")[2])
    conf, users = folder / "pgbouncer.ini", folder / "users"
    users.write_text(f'"{POOLED}" ""\n"{POOLED_RUN}" ""\n')
    conf.write_text(_CONF.format(server=_server(server), port=port, users=users, login="any" if GIVEN else "trust"))
    alive = run.live_in(folder, [PGBOUNCER, conf], log=log)
    wait_until_it_answers(f"postgres://{POOLED}@127.0.0.1:{port}{server.path}", log, alive=alive)
    return str(port)


def _server(parts: SplitResult) -> str:
    known = {"host": parts.hostname, "port": parts.port, "user": parts.username, "password": parts.password}
    return " ".join(f"{name}={unquote(str(value))}" for name, value in known.items() if value)
