"""From the parts of a URL to the options of the store; no message shows more of a URL than options without secrets."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal
from urllib.parse import quote, unquote, urlencode

from windlass.core.errors import InvalidURL
from windlass.kit.timeout_option import timeout_of
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.service_file import service_settings

OURS: Final = ("schema", "notify", "create", "migrate", "timeout", "connections", "pooler")
"""The options of the URL that the server and the driver know nothing of."""
MOST_CONNECTIONS: Final = 1000
_SCHEMA: Final = re.compile(r"[A-Za-z0-9_]{1,63}", re.ASCII)
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_HOST: Final = re.compile(r"(\[[0-9A-Za-z:.%_-]+\]|[^\[\]:]*)(:(?P<port>.*))?", re.ASCII)


def read_address(host: str, path: str, given: Mapping[str, str]) -> Options:
    """Return what the URL `postgres://host/path?given` says; `host` may hold a user, a password and several hosts."""
    options = Options(_dsn(host, path, {name: value for name, value in given.items() if name not in OURS}))
    return replace(
        options,
        schema=_schema(given["schema"]) if "schema" in given else None,
        notify=given.get("notify") != "off",
        create=given.get("create") != "no",
        migrate=given.get("migrate") == "yes",
        timeout=timeout_of("postgres", given["timeout"]) if "timeout" in given else options.timeout,
        connections=_connections(given["connections"]) if "connections" in given else options.connections,
        pooler=_pooler(given["pooler"]) if "pooler" in given else options.pooler,
    )


def _dsn(host: str, path: str, passed_on: Mapping[str, str]) -> str:
    """Return a URL that the driver reads as it was meant, also with an '@' in the password."""
    login, at, hosts = host.rpartition("@")
    user, colon, password = login.partition(":")
    database = path.removeprefix("/")
    before = {"host": hosts, "user": user, "password": password, "dbname": database}
    _check_hosts(hosts)
    _check_database(database)
    _check_given_once(before, passed_on)
    passed_on = _with_service(before, passed_on)
    _check_ports(passed_on.get("port", "5432"))
    passed_on = _without_binding(passed_on)
    # unquoted first: what was written as %40 stays one '@', and what was not becomes %40
    user, password = quote(unquote(user), safe=""), quote(unquote(password), safe="")
    # no slash without a name: the driver would take it for a database whose name is empty
    name = f"/{quote(database, safe='')}" if database else ""
    query = f"?{urlencode(passed_on, quote_via=quote)}" if passed_on else ""
    return f"postgresql://{user}{colon}{password}{at}{hosts}{name}{query}"


def _check_hosts(hosts: str) -> None:
    parts = hosts.split(",")
    for part in parts:
        found = _HOST.fullmatch(part)
        if found is None or (len(parts) > 1 and not part) or not _is_port(found["port"] or "5432"):
            message = (
                "the host of the postgres:// URL cannot be read: write host, host:5432, [::1]:5432, or several parted "
                "by commas; in a user or a password '%2F' for '/', '%3A' for ':', '%23' for '#' and '%3F' for '?'"
            )
            raise InvalidURL(message)


def _check_database(name: str) -> None:
    if "/" in name or "\0" in name:
        message = "postgres:// is followed by hosts and one database: postgres://user:password@host/database"
        raise InvalidURL(message)


def _check_given_once(before: Mapping[str, str], passed_on: Mapping[str, str]) -> None:
    for name, value in before.items():
        if value and name in passed_on:
            message = f"the {name} of the postgres:// URL is given twice: leave ?{name}= out"
            raise InvalidURL(message)


def _with_service(before: Mapping[str, str], passed_on: Mapping[str, str]) -> Mapping[str, str]:
    """Add what a service says and the URL does not."""
    name = passed_on.get("service") or os.environ.get("PGSERVICE")
    if not name:
        return passed_on
    given = {key for key, value in before.items() if value} | passed_on.keys()
    if "host" in given:
        given.add("port")
    added = {key: value for key, value in service_settings(name).items() if value and key not in given}
    return {**added, **{key: value for key, value in passed_on.items() if key != "service"}}


def _check_ports(ports: str) -> None:
    if not all(map(_is_port, ports.split(","))):
        message = "postgres:// takes port=1 to 65535, or several parted by commas, as many as there are hosts"
        raise InvalidURL(message)


def _without_binding(passed_on: Mapping[str, str]) -> Mapping[str, str]:
    """Leave out what managed databases write into their URLs, and what the driver would send to the server."""
    if passed_on.get("channel_binding", "prefer") not in ("disable", "prefer"):
        message = (
            "postgres:// cannot do channel_binding=require, its driver does not bind channels: leave it out, and let "
            "sslmode=verify-full tell the server from others"
        )
        raise InvalidURL(message)
    return {name: value for name, value in passed_on.items() if name != "channel_binding"}


def _is_port(text: str) -> bool:
    return _PORT.fullmatch(text) is not None and 0 < int(text) < 1 << 16


def _schema(name: str) -> str:
    if _SCHEMA.fullmatch(name) is None:
        message = f"postgres:// takes as schema 1 to 63 ASCII letters, digits or _, not {name[:70]!r}"
        raise InvalidURL(message)
    return name


def _connections(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and 0 < int(text[:9]) <= MOST_CONNECTIONS):
        message = f"postgres:// takes connections=1 to {MOST_CONNECTIONS}, not {text[:40]!r}"
        raise InvalidURL(message)
    return int(text)


def _pooler(text: str) -> Literal["auto", "none", "transaction"]:
    return "none" if text == "none" else "transaction" if text == "transaction" else "auto"
