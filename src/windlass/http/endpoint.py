"""The ASGI app of one operation: from a request to a call of its handler, and back."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Final, Generic, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from windlass.api.operations import IDEMPOTENCY_KEY, REQUEST, SERVING
from windlass.core.errors import WindlassError
from windlass.core.ids import job_id
from windlass.core.store import Store
from windlass.core.store_calls import RepeatSafety
from windlass.http.asked import body_reader, query_reader
from windlass.http.auth import Identity, check_roles, identity_of
from windlass.http.body import Gone
from windlass.http.call import Call, Handled
from windlass.http.payload_reading import Reading
from windlass.http.refusal import Refusal
from windlass.http.reply import Reply, encode, refused
from windlass.http.scoped_store import ScopedStore
from windlass.http.shared import Shared

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)

_REQUEST: Final = REQUEST.encode()
_IDEMPOTENCY_KEY: Final = IDEMPOTENCY_KEY.encode()
_SERVING: Final = SERVING.encode()
_QUOTED: Final = re.compile(rb'"[^"]*"')
_NAME: Final = re.compile(rb"[!-~]{1,200}")


class Endpoint(Generic[A, T]):
    """Answers one operation. The guard stands in front of it, and tells what it raises."""

    def __init__(self, shared: Shared, handled: Handled[A, T]) -> None:
        self.operation: Final = handled.operation
        self._shared = shared
        self._handler = handled.handler
        self._by_body = self.operation.method == "POST"
        self._read = (body_reader if self._by_body else query_reader)(self.operation.asks)
        self._keeps = self.operation.repeat is RepeatSafety.REPLY
        self._named = self.operation.repeat is not RepeatSafety.SAME

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        identity = identity_of(scope)
        check_roles(identity, self.operation.roles)
        reading = self._shared.reading.of(identity.name)
        try:
            given = await whole(receive) if self._by_body else scope["query_string"]
            reply = await self._answer(scope, receive, identity, given, reading)
            await reply.send(send)
        except Gone:
            return
        finally:
            # it is held until its reader has taken it
            reading.end()

    async def _answer(
        self, scope: Scope, receive: Receive, identity: Identity, given: bytes, reading: Reading
    ) -> Reply:
        shared = self._shared
        name, first = _names(scope["headers"]) if self._named else (None, None)
        named = scope["path_params"].get("id")
        call = Call(
            self._read(given),
            identity,
            shared,
            seen_by(identity, shared.client.store),
            receive,
            reading,
            None if name is None else f"{self.operation.name}|{_escaped(identity.name)}|{name}",
            None if named is None else job_id(named),
            first is not None and first != shared.id,
            first is not None,
        )
        if name is None or not self._keeps:
            return await self._done(call)
        asked = self.operation.name, given
        done = partial(self._done, call)
        return await shared.replies.once((identity.name, name), asked, done, first_elsewhere=call.first_elsewhere)

    async def _done(self, call: Call[A]) -> Reply:
        try:
            if not self._shared.opened:
                await self._shared.open()
            told = await self._handler(call)
        except (WindlassError, Refusal) as error:
            return refused(error)
        return Reply(200, await call.reading.work(call.reading.size, lambda: encode(told)))


def _escaped(name: str) -> str:
    """Return the name of a caller without the separator, so that no caller asks in the name of another one."""
    return name.replace("%", "%25").replace("|", "%7C")


def seen_by(identity: Identity, store: Store) -> Store:
    """Return the store as far as somebody may see it."""
    return store if identity.queues is None else ScopedStore(store, identity.queues)


async def whole(receive: Receive) -> bytes:
    """Return the body of a request; raises `Gone` when its caller has hung up."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    # the guard gives a body as one piece; this is for whoever mounts the routes without it
    parts = [body]
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
    return b"".join(parts)


def _names(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str | None, str | None]:
    """Return how a request is called, and the process that it was first sent to."""
    request: bytes | None = None
    key: bytes | None = None
    first: bytes | None = None
    for name, value in headers:
        if name == _REQUEST:
            request = value
        elif name == _IDEMPOTENCY_KEY:
            # as a structured header it is a string in quotes
            key = value[1:-1] if _QUOTED.fullmatch(value) else value
        elif name == _SERVING:
            first = value
    if any(given is not None and not _NAME.fullmatch(given) for given in (request, key)):
        message = "the header Windlass-Request, or Idempotency-Key, is 1 to 200 printable characters: a UUID does well"
        raise Refusal(422, "invalid_value", message)
    request = key if request is None else request
    return None if request is None else request.decode(), None if first is None else first.decode("latin-1")
