"""A Postgres that lets nobody in without a password, and where it is asked for, without encryption."""

import os
import secrets
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tests.postgres.binaries import POSTGRES_15
from tests.postgres.cluster import cluster
from tests.postgres.private import PrivateCluster
from tests.postgres.server import hand_over
from tests.servers.certificates import OPENSSL, Certificate

CERTIFIED: Final = "certified"
"""The role that comes in by its certificate."""
# the tests themselves come in as superuser
_UNENCRYPTED: Final = """\
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""
_ENCRYPTED: Final = f"""\
host all postgres 127.0.0.1/32 trust
hostssl all {CERTIFIED} 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 scram-sha-256
"""


class GuardedCluster(PrivateCluster):
    """A Postgres that asks everybody but its superuser for a password.

    With a `certificate` it lets in nobody whose connection is not encrypted, and believes what `root` has signed.
    """

    def __init__(self, certificate: Certificate | None = None, root: Certificate | None = None) -> None:
        super().__init__(programs=programs_with_tls() if certificate else None)
        rules = self._file("pg_hba.conf", _ENCRYPTED if certificate else _UNENCRYPTED)
        self.conf["hba_file"] = str(rules)
        for name, file in {
            "ssl_cert_file": certificate and certificate.file,
            "ssl_key_file": certificate and certificate.key,
            "ssl_ca_file": root and root.file,
        }.items():
            if file:
                self.conf.update({"ssl": "on", name: str(self._file(name, file.read_text()))})

    def new_url(self, user: str, password: str, *, host: str = "localhost") -> str:
        """Make a role with a password and a schema that is its own, and return the URL of the store there."""
        schema = f"test_{secrets.token_hex(6)}"
        role = sql.Identifier(user)
        self.run(sql.SQL("create role {} login password {}").format(role, sql.Literal(password)))
        self.run(sql.SQL("create schema {} authorization {}").format(sql.Identifier(schema), role))
        login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgres://{login}@{host}:{self.port}/postgres?schema={schema}"

    def set_password(self, user: str, password: str) -> None:
        """Change a role's password."""
        self.run(sql.SQL("alter role {} password {}").format(sql.Identifier(user), sql.Literal(password)))

    def end_sessions(self, user: str) -> None:
        """End every session of a role, and return when all are gone."""
        ending = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = {}"
        self.run(sql.SQL(ending).format(user))

    def run(self, statement: sql.Composed | sql.SQL) -> list[tuple[object, ...]]:
        """Run a statement as superuser, and return its rows."""
        with psycopg.connect(self.url, sslmode="disable", autocommit=True) as superuser:
            cursor = superuser.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _file(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text)
        # a key that others may read is refused
        file.chmod(0o600)
        hand_over(file)
        return file


@cache
def programs_with_tls() -> Path | None:
    """Return the programs of a Postgres that can encrypt: the run's own, or else Debian's; the wheel's cannot."""
    return next((programs for programs in (cluster().programs, POSTGRES_15) if programs and _has_tls(programs)), None)


def skip_without_tls() -> None:
    """Skip the test when no Postgres here can encrypt; in CI that is a failure unless none could be installed there."""
    missing = "openssl" if OPENSSL is None else "a Postgres that can encrypt" if programs_with_tls() is None else None
    if missing is None:
        return
    reason = os.environ.get("WINDLASS_TEST_NO_POSTGRES_15", "")
    if "WINDLASS_CI" in os.environ and not reason:
        pytest.fail(f"{missing} is not installed: CI runs what needs it")
    pytest.skip(f"{missing} is not installed: {reason or 'apt-get install postgresql-15'}")


def _has_tls(programs: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "postgresql.conf").touch()
        asked = [str(programs / "postgres"), "-C", "ssl_library", "-D", folder]
        told = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
    return told.stdout.strip() != ""
