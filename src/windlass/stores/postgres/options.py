"""What a postgres:// URL says."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit


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

    def __repr__(self) -> str:
        return (
            f"Options({self.where!r}, notify={self.notify}, create={self.create}, migrate={self.migrate}, "
            f"timeout={self.timeout}, connections={self.connections}, pooler={self.pooler!r})"
        )
