"""The door of a process that listens: where it is, who is let in there, and by which names it may be called."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp

from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue
from windlass.http.auth import auth_for
from windlass.http.body import LARGEST_BODY
from windlass.http.crowd import MOST_CONNECTIONS, MOST_PER_ADDRESS
from windlass.http.health import LIVE, READY
from windlass.http.listening import Listening
from windlass.http.request_headers import EVERYWHERE, Hosts
from windlass.http.sessions import Sessions
from windlass.http.token_file import TokenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorOptions:
    """Where and for whom a process listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes any that is free."""
    tokens: Path | None = None
    insecure: bool = False
    allowed_hosts: Sequence[str] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_tls: bool = False
    """Whether a proxy in front ends TLS, so that browsers come by https."""
    largest_body: int = LARGEST_BODY
    connections: int = MOST_CONNECTIONS
    connections_per_address: int = MOST_PER_ADDRESS
    """Of those that have not been authenticated."""


class FrontDoor:
    """What the options come to: who is known, who has logged in, and which names are known."""

    def __init__(self, options: DoorOptions, *, clock: Clock) -> None:
        """Read the files that the options name; raises `InvalidValue` for what cannot be served safely."""
        self._options = options
        self._tls = _tls(options)
        tokens = None if options.tokens is None else TokenFile(options.tokens)
        secure = self._tls is not None or options.behind_tls
        self.sessions: Final = None if tokens is None else Sessions(tokens, secure=secure, clock=clock)
        self.auth: Final = auth_for(options.host, tokens=tokens, insecure=options.insecure, sessions=self.sessions)
        self.hosts: Final = Hosts(options.host, options.allowed_hosts)

    def listening(self, app: ASGIApp, stopping: Callable[[], None]) -> Listening:
        """Return the port, not open yet, that `app` is to be reached at; `stopping` is called when it closes."""
        options = self._options
        return Listening(
            app,
            options.host,
            options.port,
            tls=self._tls,
            connections=options.connections,
            connections_per_address=options.connections_per_address,
            probes=(LIVE, READY),
            stopping=stopping,
        )

    def url(self, port: int) -> str:
        """Return where it is reached by programs; what is bound to every address has that for its name."""
        return self._url(self._options.host, port)

    def clickable(self, port: int) -> str:
        """Return where a browser reaches it, by a name that is let in."""
        host = self._options.host
        if host.strip("[]") in EVERYWHERE:
            host = next(iter(self._options.allowed_hosts), "127.0.0.1")
        return f"{self._url(host, port)}/"

    def _url(self, host: str, port: int) -> str:
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self._tls is None else 'https'}://{shown}:{port}"


def _tls(options: DoorOptions) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        if options.tls_key is not None:
            message = "a key without its certificate encrypts nothing: give --tls-cert as well"
            raise InvalidValue(message)
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        message = f"the certificate {options.tls_cert} and its key cannot be used: {error.strerror or error}"
        raise InvalidValue(message) from error
    return context
