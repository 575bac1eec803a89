"""The role that works in the stores of the tests: it has the rights that the page on migrations lists, and no other."""

import atexit
import secrets
from typing import Final
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.postgres.rights import ON_DATABASE, renamed

RUN: Final = "windlass_run"
POOLED: Final = "pooled"
"""PgBouncer's superuser, another one than who goes there directly: it keeps sessions when its clients are gone."""
POOLED_RUN: Final = "pooled_run"
"""The role that works, through PgBouncer: it has no rights but those of `RUN`."""
_OURS: Final = f"""
create role {RUN} login;
create role {POOLED} superuser login;
create role {POOLED_RUN} login in role {RUN};
"""
_TURN: Final = "select pg_advisory_lock(hashtext('windlass tests: one at a time'))"


def make_roles(url: str) -> None:
    """Make the roles of a server of our own."""
    with psycopg.connect(url, autocommit=True) as superuser:
        superuser.execute(_OURS)


def let_in(url: str) -> None:
    """Let them into a database of our own, where nobody has a right only because everybody has it, but to connect."""
    with psycopg.connect(url, autocommit=True) as superuser:
        database = superuser.info.dbname
        superuser.execute(f"revoke temporary on database {database} from public".encode())
        superuser.execute("revoke all on schema public from public")
        superuser.execute(renamed(ON_DATABASE, {"shop": database, "windlass_run": RUN}).encode())


def make_role_in_given(url: str) -> str | None:
    """Make a role in a server that is not ours, for this process, and return its login.

    None where that is not allowed, or where the server does not let it in.
    """
    if "user" in parse_qs(urlsplit(url).query):
        return None
    name, password = f"{RUN}_{secrets.token_hex(4)}", secrets.token_hex(16)
    with psycopg.connect(url, autocommit=True) as maker:
        try:
            maker.execute(f"create role {name} login password '{password}'".encode())
        except psycopg.errors.InsufficientPrivilege:
            return None
        atexit.register(_drop, url, name)
        maker.execute(_TURN)
        maker.execute(renamed(ON_DATABASE, {"shop": f'"{maker.info.dbname}"', "windlass_run": name}).encode())
    login = f"{name}:{password}"
    try:
        psycopg.connect(as_role(url, login)).close()
    except psycopg.OperationalError:
        return None
    return login


def as_role(url: str, login: str) -> str:
    """Return `url` with another user, or user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()


def user_of(login: str) -> str:
    """Return the user of a login or of a URL."""
    return login.rpartition("//")[2].partition("@")[0].partition(":")[0]


def _drop(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as maker:
        maker.execute(_TURN)
        maker.execute(f"drop owned by {name}".encode())
        maker.execute(f"drop role {name}".encode())
