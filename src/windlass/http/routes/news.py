"""News: a stream that tells which topics have rung."""

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from typing import Final, Self

from starlette.types import Receive, Scope, Send

from windlass.api.calls import News, NewsAsked
from windlass.api.operations import NEWS
from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue, WindlassError
from windlass.core.names import check_name
from windlass.core.store import Store
from windlass.core.topics import ENDS, FLAGS, PAUSES, SCHEDULES, Topic
from windlass.http.allowed import check_roles
from windlass.http.asked import query_reader
from windlass.http.auth import Auth, identity_of
from windlass.http.endpoint import seen_by
from windlass.http.refusal import Refusal
from windlass.http.reply import RETRY_AFTER, encode, refused
from windlass.http.request_headers import deciding_headers
from windlass.http.shared import Shared

MOST_STREAMS: Final = 1_000
STILL_HERE: Final = 15.0
"""Seconds of silence after which a comment tells that the stream lives."""

_ALL: Final = frozenset({ENDS, FLAGS, PAUSES, SCHEDULES})
_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    # a proxy that gathers what it passes on would hold the news back
    (b"x-accel-buffering", b"no"),
)


class NewsEndpoint:
    """Streams news to one caller for each request.

    What rings while an event is on its way goes out together in the next one: a reader who is slow gets fewer events,
    and costs no more memory than its topics. Whoever is no longer known by then is heard no more.
    """

    operation: Final = NEWS

    def __init__(self, shared: Shared, auth: Auth) -> None:
        self._shared = shared
        self._auth = auth
        self._read = query_reader(NewsAsked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the caller hangs up or the process stops."""
        identity = identity_of(scope)
        check_roles(identity, NEWS.roles)
        asked = self._read(scope["query_string"])
        shared = self._shared
        if len(shared.streams) >= MOST_STREAMS or shared.stopping:
            message = (
                f"this process has its {MOST_STREAMS:,} streams of news: look again each second, or ask another one"
            )
            raise Refusal(503, "store_unavailable", message, RETRY_AFTER)
        try:
            topics = [_topic(each) for each in dict.fromkeys(asked.topic)]
            await shared.open()
        except WindlassError as error:
            await refused(error).send(send)
            return
        # who is limited to some queues hears nothing of others, and of what tells when anybody works
        store = seen_by(identity, shared.client.store)
        await self._stream(scope, receive, send, Rung(store, topics, shared.client.clock))

    async def _stream(self, scope: Scope, receive: Receive, send: Send, rung: "Rung") -> None:
        shared, clock = self._shared, self._shared.client.clock
        with rung:
            ending = asyncio.ensure_future(_until_gone(receive, rung.end))
            shared.streams.add(rung.end)
            try:
                await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
                await send(_part(b": ok\n\n"))
                known_at = clock.monotonic()
                while (news := await rung.wait(STILL_HERE)) is not None:
                    if clock.monotonic() - known_at >= STILL_HERE:
                        if self._auth.identify(deciding_headers(scope["headers"])) is None:
                            break
                        known_at = clock.monotonic()
                    await send(_part(_event(news) if news else b": still here\n\n"))
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                shared.streams.discard(rung.end)
                ending.cancel()
                await asyncio.wait((ending,))


class Rung:
    """Gathers which topics have rung, from any thread, for one reader on its event loop."""

    def __init__(self, store: Store, topics: Collection[Topic], clock: Clock) -> None:
        self._store = store
        self._topics = topics
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        self._waiting: set[Topic] = set()
        self._woken = asyncio.Event()
        self._ended = False
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        for topic in self._topics:
            self._listening.callback(self._store.listen((topic,), self._ring_of(topic)))
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def end(self) -> None:
        """Let the reader end; from its event loop."""
        self._ended = True
        self._woken.set()

    async def wait(self, silence: float) -> list[str] | None:
        """Return the topics that have rung since the last time: none after `silence` seconds, and None at the end."""
        timer = self._clock.call_later(silence, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()
        if self._ended:
            return None
        with self._guard:
            news, self._waiting = self._waiting, set()
        return sorted(news)

    def _ring_of(self, topic: Topic) -> Callable[[], None]:
        def ring() -> None:
            with self._guard:
                first = not self._waiting
                self._waiting.add(topic)
            if first:
                # a loop that was closed has nobody left to wake
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._woken.set)

        return ring


def _topic(text: str) -> Topic:
    topic = Topic(text)
    if topic in _ALL:
        return topic
    what, colon, name = text.partition(":")
    if what not in ("queue", "lock") or not colon:
        message = f"a topic is ends, flags, pauses, schedules, queue:NAME or lock:NAME, not {text[:60]!r}"
        raise InvalidValue(message)
    check_name(name, what)
    return topic


async def _until_gone(receive: Receive, end: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    end()


def _part(body: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _event(topics: list[str]) -> bytes:
    return b"data: " + encode(News(topics=topics)) + b"\n\n"
