"""Passwords out of a file, in the form that libpq reads; the driver leaves in what is only there to escape.

https://www.postgresql.org/docs/current/libpq-pgpass.html
"""

import getpass
import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from windlass.stores.postgres.hosts import Host, read_host

logger = logging.getLogger("windlass.postgres")

_FIELD: Final = re.compile(r"(?:^|:)((?:\\.|\\$|[^\\:])*)")
_ESCAPED: Final = re.compile(r"\\(.)")
_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_told: Final[set[Path]] = set()


class _Login(NamedTuple):
    """What a line is looked for by."""

    host: str
    port: str
    database: str
    user: str


def password_of(dsn: str, host: Host) -> str | None:
    """Return the password of a file for this server; None where the URL or the environment gives one.

    It is read anew each time, so that a password may change while a store is open. Where the file has none it is empty,
    so that nobody looks for it again.
    """
    parts = urlsplit(dsn)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.password or "password" in query or "PGPASSWORD" in os.environ:
        return None
    file = _file(query)
    if file is None:
        return ""
    entries = [_fields(line) for line in _lines(file)]
    for login in _logins(parts, query, host):
        for *wanted, password in (entry for entry in entries if len(entry) == len(login) + 1):
            if all(want in ("*", have) for want, have in zip(wanted, login, strict=True)):
                return password
    return ""


def _file(query: dict[str, str]) -> Path | None:
    named = query.get("passfile") or os.environ.get("PGPASSFILE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".pgpass"
    except RuntimeError:
        # a user without a home
        return None


def _lines(file: Path) -> Iterator[str]:
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode) or mode & _OF_OTHERS:
            _tell(file, "it is not used: it must be a file that nobody else may read, chmod 0600")
            return
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        _tell(file, f"it cannot be read ({type(error).__name__})")
        return
    # not `splitlines`: a password may hold other characters that look like the end of a line
    yield from (line.removesuffix("\r") for line in text.split("\n") if line and not line.startswith("#"))


def _tell(file: Path, what: str) -> None:
    """Say it once: a file is read at every new connection."""
    if file not in _told:
        _told.add(file)
        logger.warning("the file of passwords %s: %s", file, what)


def _fields(line: str) -> list[str]:
    # what follows a fifth field is no part of the password
    return [_ESCAPED.sub(r"\1", field) for field in _FIELD.findall(line)[:5]]


def _logins(parts: SplitResult, query: dict[str, str], host: Host) -> Iterator[_Login]:
    user = unquote(parts.username or "") or query.get("user") or os.environ.get("PGUSER") or getpass.getuser()
    path = unquote(parts.path.removeprefix("/"))
    database = path or query.get("dbname") or os.environ.get("PGDATABASE") or user
    for name, port in _servers(parts, query, host):
        # a server on this machine, by its socket
        yield from (_Login(each, port, database, user) for each in ([name, "localhost"] if name[:1] == "/" else [name]))


def _servers(parts: SplitResult, query: dict[str, str], host: Host) -> Iterator[tuple[str, str]]:
    """Return the servers that this connection may lead to, each with its port."""
    default = query.get("port") or os.environ.get("PGPORT") or "5432"
    if host.name is not None:
        yield host.name, str(host.port or default)
    elif named := parts.netloc.rpartition("@")[2]:
        yield from ((str(each.name), str(each.port or default)) for each in map(read_host, named.split(",")))
    else:
        names = (query.get("host") or os.environ.get("PGHOST") or "localhost").split(",")
        ports = default.split(",")
        yield from zip(names, ports * len(names) if len(ports) == 1 else ports, strict=False)
