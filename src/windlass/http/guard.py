"""The guard around everything that is served: what it does not let in reaches no route."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windlass.core.clock import Clock
from windlass.core.errors import WindlassError
from windlass.http.auth import Auth, RefuseAll, identity_of, is_identified, set_identity
from windlass.http.body import (
    AMBIGUOUS,
    ARRIVES_WITHIN,
    LARGEST_BODY,
    TIMED_OUT,
    Gone,
    check_announced,
    given_again,
    is_long,
    whole_body,
)
from windlass.http.crowd import SHARE
from windlass.http.refusal import Refusal, too_many_requests, unauthorized
from windlass.http.reply import Reply, refused
from windlass.http.request_headers import SAFE, Hosts, announces_body, check_site, deciding_headers
from windlass.http.throttle import Rates, WrongTokens
from windlass.system import SystemClock

EVERY_REPLY: Final[Mapping[bytes, bytes]] = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class GuardedReply:
    """A `send` that adds the headers of every reply; of those that a page has set for itself its own stay."""

    def __init__(self, send: Send, headers: Mapping[bytes, bytes] = EVERY_REPLY) -> None:
        self._send = send
        self._headers = headers
        self.started = False

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.started = True
            own = list(message.get("headers", ()))
            names = {name.lower() for name, _ in own}
            own += [pair for pair in self._headers.items() if pair[0] not in names]
            message = {**message, "headers": own}
        await self._send(message)


logger = logging.getLogger("windlass.http")

_REFUSE_ALL: Final = RefuseAll()
_LOOPBACK: Final = Hosts()


def _as_json(scope: Scope, error: Refusal | WindlassError) -> Reply:
    del scope
    return refused(error)


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What a guard lets in; without any it is nobody."""

    auth: Auth = _REFUSE_ALL
    hosts: Hosts = _LOOPBACK
    probes: Collection[str] = ()
    """Paths that everybody may GET, by whatever name: load balancers ask them by address, and have no token."""
    public: Collection[str] = ()
    """Paths that need no token, such as that of the login."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What every reply has beside what protects a browser, also those that refuse."""
    largest_body: int = LARGEST_BODY
    body_within: float = ARRIVES_WITHIN
    refused: Callable[[Scope, Refusal | WindlassError], Reply] = _as_json
    """How a request is told that it is refused: a problem as JSON, unless whoever asks reads pages."""


class Guard:
    """An ASGI app in front of another one.

    In this order a request must be for this host, be sent by no page of another site, come from somebody who is known
    and does not ask too often, and have a body of JSON, of bounded size and in time. Whatever is refused gets a problem
    as JSON, and each reply the headers that protect a browser. The app finds who asks by `identity_of(scope)`.
    """

    def __init__(self, app: ASGIApp, settings: GuardSettings | None = None, *, clock: Clock | None = None) -> None:
        self._app = app
        self._settings = settings or GuardSettings()
        self._clock = clock or SystemClock()
        own = {name.lower().encode(): value.encode() for name, value in self._settings.headers.items()}
        self._headers = {**EVERY_REPLY, **own}
        self.wrong_tokens: Final = WrongTokens(clock=self._clock)
        self.rates: Final = Rates(clock=self._clock)
        self._under_way: Counter[str] = Counter()
        """Requests of each caller that are under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            try:
                await self._answer(scope, receive, GuardedReply(send, self._headers))
            finally:
                self._count_out(scope)
        else:
            # nothing here speaks by web sockets; closed before it is opened, it ends with 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: GuardedReply) -> None:
        headers: Mapping[str, str] = {}
        try:
            headers = deciding_headers(scope["headers"])
            receive_rest = await self._let_in(scope, headers, receive)
        except Gone:
            return
        except Refusal as refusal:
            # what is left of a body, or nobody knows the end of, would stand in front of the next request
            cut = refusal.status in (AMBIGUOUS, TIMED_OUT) or is_long(headers)
            last = cut and scope.get("http_version", "1.1") < "2"
            await self._refused(scope, refusal, last=last).send(send)
            return
        except Exception:
            logger.exception("a request was refused, since who it is from could not be told")
            await self._refused(scope, _mistake()).send(send)
            return
        await self._ask_app(scope, receive_rest, send)

    async def _ask_app(self, scope: Scope, receive: Receive, send: GuardedReply) -> None:
        try:
            await self._app(scope, receive, send)
        except Gone:
            return
        except (Refusal, WindlassError) as error:
            if send.started:
                raise
            await self._refused(scope, error).send(send)
        except Exception:
            # the server cuts the connection of a reply that has begun: its reader must not take it for a whole one
            if send.started:
                raise
            logger.exception("a request ended by an error")
            await self._refused(scope, _mistake()).send(send)

    def _refused(self, scope: Scope, error: Refusal | WindlassError, *, last: bool = False) -> Reply:
        reply = self._settings.refused(scope, error)
        return reply._replace(headers={**reply.headers, "Connection": "close"}) if last else reply

    async def _let_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Receive:
        method, path = scope["method"], scope["path"].removeprefix(scope.get("root_path", ""))
        if path in self._settings.probes and method in SAFE:
            return receive
        self._settings.hosts.check(headers.get("host"))
        check_site(method, headers)
        if path not in self._settings.public:
            self._identify(scope, headers)
        if not announces_body(headers):
            return receive
        return await self._with_body(headers, receive)

    def _identify(self, scope: Scope, headers: Mapping[str, str]) -> None:
        identity = self._settings.auth.identify(headers)
        if identity is None:
            # who sends no token tries none, and a cookie of a session that is over is nobody's fault
            wait = self.wrong_tokens.failed(_address(scope)) if "authorization" in headers else 0.0
            raise too_many_requests("too many wrong tokens came from your address", wait) if wait else unauthorized()
        wait = self.rates.take(identity)
        if wait:
            raise too_many_requests(f"{identity.name} asks more often than {identity.rate:g} times a second", wait)
        share: int | None = scope.get(SHARE)
        if share is not None and self._under_way[identity.name] >= share:
            message = f"{identity.name} has {share:,} requests under way, the most that one caller may have"
            raise too_many_requests(message, 1.0)
        set_identity(scope, identity)
        self._under_way[identity.name] += 1

    def _count_out(self, scope: Scope) -> None:
        if is_identified(scope):
            name = identity_of(scope).name
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]

    async def _with_body(self, headers: Mapping[str, str], receive: Receive) -> Receive:
        settings = self._settings
        check_announced(headers, settings.largest_body)
        body = await whole_body(receive, settings.largest_body, settings.body_within, self._clock)
        return given_again(body, receive)


def _mistake() -> Refusal:
    return Refusal(500, "internal", "this process made a mistake: its log tells which")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
