"""The servers that a URL names, one of which takes writes."""

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

ATTRIBUTE = "target_session_attrs"


class Host(NamedTuple):
    """One server of a URL; None where the driver is to find it by itself."""

    name: str | None = None
    port: int | None = None


def hosts_of(dsn: str) -> list[Host]:
    """Return the servers that `dsn` names before its path, in their order; at least one."""
    parts = urlsplit(dsn)
    named = parts.netloc.rpartition("@")[2].split(",")
    if len(named) == 1 or "port" in parse_qs(parts.query):
        return [Host()]
    return [read_host(text) for text in named]


def needs_writes(dsn: str) -> bool:
    """Whether only a server that takes writes will do: the URL does not say otherwise."""
    wanted = parse_qs(urlsplit(dsn).query).get(ATTRIBUTE, ["read-write"])[-1]
    return wanted in ("read-write", "primary")


def driver_chooses_host(dsn: str) -> bool:
    """Whether the servers are named where only the driver looks, so that it has to find the one that takes writes."""
    parts = urlsplit(dsn)
    return not parts.netloc.rpartition("@")[2] and ATTRIBUTE not in parse_qs(parts.query)


def read_host(text: str) -> Host:
    """Return the server that `host`, `host:port` or `[address]:port` is."""
    name, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = text, ""
    return Host(unquote(name.removeprefix("[").removesuffix("]")), int(port) if port else None)
