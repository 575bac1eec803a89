"""What a postgres:// URL says."""

import os
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from windlass.kit.spelt_host import spelt_host
from windlass.stores.postgres.hosts import read_host

_PORT: Final = "5432"


@dataclass(frozen=True, slots=True, repr=False)
class Options:
    """Where the database is and how this process works with it; never shows a password.

    `timeout` is the deadline of a call in seconds, `connections` the most that are open per process and event loop.
    `lent` is not said by the URL: users work on these connections, and not the moves of the store.
    """

    dsn: str
    schema: str | None = None
    notify: bool = True
    create: bool = True
    migrate: bool = False
    timeout: float = 10.0
    connections: int = 8
    pooler: Literal["auto", "none", "transaction"] = "auto"
    lent: bool = False

    @property
    def where(self) -> str:
        """Name the database for people, without user and password."""
        parts = urlsplit(self.dsn)
        hosts = parts.netloc.rpartition("@")[2] or "the server of the environment"
        database = unquote(parts.path.removeprefix("/"))
        schema = f", schema {self.schema}" if self.schema else ""
        return f"database {database} at {hosts}{schema}" if database else f"the database at {hosts}{schema}"

    @property
    def known_as(self) -> frozenset[tuple[object, ...]]:
        """A name of this store that is no other's, as far as the URL tells where it is."""
        parts = urlsplit(self.dsn)
        given = dict(parse_qsl(parts.query))
        if not given.keys().isdisjoint({"host", "port"}):
            # it is the driver that puts these together
            return frozenset()
        login, _, hosts = parts.netloc.rpartition("@")
        database = unquote(parts.path.removeprefix("/")) or given.get("dbname", "")
        # a database without a name is the environment's, or that of its user
        user = "" if database else unquote(login.partition(":")[0]) or given.get("user", "")
        port = os.environ.get("PGPORT") or _PORT
        found = map(read_host, hosts.split(","))
        servers = frozenset((spelt_host(each.name or ""), str(each.port or port)) for each in found)
        return frozenset({("postgres", servers, database, user, self.schema)})

    def __repr__(self) -> str:
        return (
            f"Options({self.where!r}, notify={self.notify}, create={self.create}, migrate={self.migrate}, "
            f"timeout={self.timeout}, connections={self.connections}, pooler={self.pooler!r})"
        )
