"""What an http:// URL says."""

from dataclasses import dataclass

from windlass.kit.spelt_host import spelt_host


@dataclass(frozen=True, slots=True, repr=False)
class Options:
    """Where `windlass serve` is and how this process works with it; never shows the token.

    `prefix` is what stands before `/api/v1`, empty or with a slash in front, ready to be sent. `timeout` is the
    deadline of a call in seconds, `connections` the most that are open per process and event loop for calls.
    """

    host: str
    port: int
    prefix: str = ""
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    timeout: float = 10.0
    connections: int = 8
    token: str | None = None

    @property
    def authority(self) -> str:
        """Name host and port as a URL and the header Host do: without the port that goes without saying."""
        # a zone tells this machine which way to send, and nobody else
        host = f"[{self.host.partition('%')[0]}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def where(self) -> str:
        """Name the server for people."""
        return f"the server at {'https' if self.tls else 'http'}://{self.authority}{self.prefix}"

    @property
    def known_as(self) -> frozenset[tuple[object, ...]]:
        """A name of what is served there that is no other's."""
        return frozenset({("http", spelt_host(self.host), self.port, self.prefix)})

    def __repr__(self) -> str:
        token = "no" if self.token is None else "a"
        return f"Options({self.where!r}, timeout={self.timeout}, connections={self.connections}, {token} token)"
