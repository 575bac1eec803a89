"""The serving process: a store, its services and its routes, from a start to a stop."""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from windlass.client.client import Client
from windlass.core.errors import Fenced, InvalidValue
from windlass.engine.config import ServerConfig
from windlass.http.app import Api
from windlass.http.auth import auth_for
from windlass.http.body import LARGEST_BODY
from windlass.http.hosts import Hosts
from windlass.http.listening import MOST_CONNECTIONS, Listening
from windlass.http.services import ServingServices
from windlass.http.sessions import Sessions
from windlass.http.token_file import TokenFile

logger = logging.getLogger("windlass")

FENCED_GRACE: Final = 0.5
"""Seconds that requests have to be answered, with a refusal, when another process has taken the store over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where and for whom a store is served."""

    host: str = "127.0.0.1"
    port: int = 8700
    tokens: Path | None = None
    insecure: bool = False
    allowed_hosts: Sequence[str] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_tls: bool = False
    """Whether a proxy in front ends TLS, so that browsers come by https."""
    largest_body: int = LARGEST_BODY
    connections: int = MOST_CONNECTIONS


class Serving:
    """Serves the store of a client, which it opens and closes, and runs its services.

    A stop answers whoever waits, lets requests under way be done, and then lets go of the store.
    """

    def __init__(self, client: Client, config: ServerConfig, options: ServeOptions) -> None:
        """Be ready to start; raises `InvalidValue` for what cannot be served safely."""
        if client.store.features.served:
            message = "this store is served by another process already: serve the store itself, by its own URL"
            raise InvalidValue(message)
        self._client = client
        self._grace = config.shutdown_timeout.total_seconds()
        self._options = options
        self._tls = _tls(options)
        tokens = None if options.tokens is None else TokenFile(options.tokens)
        secure = self._tls is not None or options.behind_tls
        sessions = None if tokens is None else Sessions(tokens, secure=secure, clock=client.clock)
        # servers renew each third of a lease: those that live have come back by then
        self._services = ServingServices(client, config, rescue_after=client.settings.of("default").lease / 2)
        self._services.fenced = self._fence
        self._fenced: Fenced | None = None
        self._over = asyncio.Event()
        self._api = Api(
            client,
            auth=auth_for(options.host, tokens=tokens, insecure=options.insecure, sessions=sessions),
            hosts=Hosts(options.host, options.allowed_hosts),
            sessions=sessions,
            services=self._services,
            largest_body=options.largest_body,
        )
        self._listening = Listening(
            self._api,
            options.host,
            options.port,
            tls=self._tls,
            connections=options.connections,
            stopping=self._api.stop_waiting,
        )

    @property
    def url(self) -> str:
        """Where it can be reached."""
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"{'http' if self._tls is None else 'https'}://{host}:{self._listening.port}"

    async def start(self) -> None:
        """Open the store, start the services, and then the port; when it raises nothing is left open."""
        try:
            await self._client.open()
            await self._services.start()
            await self._listening.start()
        except BaseException:
            await self._close()
            raise

    async def stop(self) -> None:
        """Stop in the order in which callers notice least."""
        await self._listening.stop(self._grace if self._fenced is None else min(self._grace, FENCED_GRACE))
        await self._close()

    async def serve_until(self, asked_to_stop: asyncio.Event) -> None:
        """Serve until somebody wants it to end; raises `Fenced` when another process has taken the store over."""
        async with self:
            logger.info("serving at %s", self.url)
            await self._until(asked_to_stop)
            if self._fenced is None:
                logger.info("stopping: requests under way have %g seconds", self._grace)
        if self._fenced is not None:
            raise self._fenced

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _until(self, asked_to_stop: asyncio.Event) -> None:
        ends = [asyncio.ensure_future(event.wait()) for event in (asked_to_stop, self._over)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def _fence(self, error: Fenced) -> None:
        self._fenced = self._fenced or error
        self._over.set()

    async def _close(self) -> None:
        await self._api.close()
        await self._services.stop()
        await self._client.close()


def _tls(options: ServeOptions) -> ssl.SSLContext | None:
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
