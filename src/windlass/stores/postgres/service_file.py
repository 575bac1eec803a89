"""Connection service files, in the form that libpq reads; the driver takes parts of them for something else.

https://www.postgresql.org/docs/current/libpq-pgservice.html
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from windlass.core.errors import InvalidURL

TAKEN: Final = {
    "host", "port", "user", "password", "dbname", "passfile", "application_name", "options", "target_session_attrs",
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "sslnegotiation",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "krbsrvname", "gsslib",
}  # fmt: skip
"""What a service may say: the same as a URL."""
PASSED_BY: Final = {
    "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
    "client_encoding", "fallback_application_name", "load_balance_hosts",
}  # fmt: skip
"""What Windlass settles by itself."""


def service_settings(name: str) -> Mapping[str, str]:
    """Return what the service `name` says; raises `InvalidURL` where there is none, or where it says what we cannot do.

    No message shows a value: one of them may be a password.
    """
    for file in _files():
        found = _section(file, name)
        if found is not None:
            _check_known(found, name, file)
            return {key: value for key, value in found.items() if key in TAKEN}
    places = " or ".join(map(str, _files())) or "~/.pg_service.conf"
    message = f"there is no service {name[:80]!r} in {places}: correct its name, or name the file by PGSERVICEFILE"
    raise InvalidURL(message)


def _files() -> list[Path]:
    files: list[Path] = []
    if named := os.environ.get("PGSERVICEFILE"):
        files.append(Path(named))
    else:
        # a user without a home has none
        with suppress(RuntimeError):
            files.append(Path.home() / ".pg_service.conf")
    if folder := os.environ.get("PGSYSCONFDIR"):
        files.append(Path(folder) / "pg_service.conf")
    return files


def _section(file: Path, name: str) -> dict[str, str] | None:
    """Return the settings of a service; None when this file does not have it, or cannot be read."""
    found: dict[str, str] | None = None
    for line in _lines(file):
        if line.startswith("["):
            if found is not None:
                break
            if line == f"[{name}]":
                found = {}
        elif found is not None:
            key, _, value = line.partition("=")
            # of two that are the same the first counts
            found.setdefault(key.rstrip(), value)
    return found


def _lines(file: Path) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    yield from (line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#"))


def _check_known(found: Mapping[str, str], name: str, file: Path) -> None:
    for key in found:
        if key not in TAKEN | PASSED_BY:
            message = f"service {name[:80]!r} of {file} says {key[:40]!r}, which a URL cannot: leave it out there"
            raise InvalidURL(message)
