"""What a redis:// URL says."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from windlass.kit.spelt_host import spelt_host

Form = Literal["single", "sentinel", "cluster"]

PREFIX = "windlass"
"""What the keys of a store begin with, unless the URL says otherwise."""


class Place(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, repr=False)
class Options:
    """Where the servers are and how this process works with them; never shows a password.

    `places` are those of the server, of the Sentinels or of some nodes of the Cluster. `timeout` is the deadline of a
    call in seconds, `connections` the most that are open per process, event loop and server. `wait` is how many
    replicas must have a write before it counts.
    """

    form: Form
    places: tuple[Place, ...]
    database: int = 0
    master: str | None = None
    user: str | None = None
    password: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    sentinel_user: str | None = None
    sentinel_password: str | None = None
    prefix: str = PREFIX
    spread: bool = False
    create: bool = True
    timeout: float = 10.0
    connections: int = 8
    wait: int = 0
    evicting: bool = False

    @property
    def where(self) -> str:
        """Name the server for people, without user and password."""
        server = {
            "single": "the server",
            "sentinel": f"the master {self.master} of the Sentinels",
            "cluster": "the Cluster",
        }
        prefix = "" if self.prefix == PREFIX else f", prefix {self.prefix}"
        return f"{server[self.form]} at {', '.join(map(str, self.places))}{prefix}"

    @property
    def known_as(self) -> frozenset[tuple[object, ...]]:
        """Names of this store that are no other's: one for each server, since any of them leads to the jobs."""
        store = self.form, self.master, self.database, self.prefix, self.spread
        return frozenset(("redis", spelt_host(place.host), place.port, *store) for place in self.places)

    def of_sentinel(self) -> "Options":
        """Return how a Sentinel is connected to."""
        return replace(self, database=0, user=self.sentinel_user, password=self.sentinel_password)

    def __repr__(self) -> str:
        return (
            f"Options({self.where!r}, spread={self.spread}, create={self.create}, timeout={self.timeout}, "
            f"connections={self.connections}, wait={self.wait})"
        )
