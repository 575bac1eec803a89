"""News: a stream that tells which topics have rung."""

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from typing import Final, Self

from starlette.types import Receive, Scope, Send

from windlass.api.news import News, NewsAsked
from windlass.api.operations import NEWS
from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue, WindlassError
from windlass.core.names import check_name
from windlass.core.store import Store
from windlass.core.topics import ENDS, FLAGS, PAUSES, SCHEDULES, Topic
from windlass.http.asked import query_reader
from windlass.http.auth import Auth, check_roles, identity_of
from windlass.http.endpoint import seen_by
from windlass.http.reply import event, refused
from windlass.http.shared import Shared
from windlass.http.streaming import Streaming
from windlass.http.wakes import Wakes

_ALL: Final = frozenset({ENDS, FLAGS, PAUSES, SCHEDULES})


class NewsEndpoint:
    """Streams news to one caller for each request.

    What rings while an event is on its way goes out together in the next one: a reader who is slow gets fewer events,
    and costs no more memory than its topics. Whoever is no longer known by then is heard no more.
    """

    operation: Final = NEWS

    def __init__(self, shared: Shared, auth: Auth) -> None:
        self._shared = shared
        self._streaming = Streaming(shared, auth)
        self._read = query_reader(NewsAsked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the caller hangs up or the process stops."""
        identity = identity_of(scope)
        check_roles(identity, NEWS.roles)
        asked = self._read(scope["query_string"])
        shared = self._shared
        try:
            topics = [_topic(each) for each in dict.fromkeys(asked.topic)]
            await shared.open()
        except WindlassError as error:
            await refused(error).send(send)
            return
        # who is limited to some queues hears nothing of others, and of what tells when anybody works
        store = seen_by(identity, shared.client.store)
        with Rung(store, topics, shared.client.clock) as rung:
            await self._streaming.stream(scope, receive, send, rung)


class Rung:
    """Gathers which topics have rung, from any thread, for one reader on its event loop."""

    def __init__(self, store: Store, topics: Collection[Topic], clock: Clock) -> None:
        self._store = store
        self._topics = topics
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        self._waiting: set[Topic] = set()
        self._wakes = Wakes(clock)
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        for topic in self._topics:
            self._listening.callback(self._store.listen((topic,), self._ring_of(topic)))
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def end(self) -> None:
        """Let the reader end; from its event loop."""
        self._wakes.end()

    async def wait(self, silence: float) -> bytes | None:
        """Return an event of the topics that have rung since the last one: none after `silence`, None at the end."""
        if not await self._wakes.woken(silence):
            return None
        with self._guard:
            news, self._waiting = self._waiting, set()
        return event(News(topics=sorted(news))) if news else b""

    def _ring_of(self, topic: Topic) -> Callable[[], None]:
        def ring() -> None:
            with self._guard:
                first = not self._waiting
                self._waiting.add(topic)
            if first:
                # a loop that was closed has nobody left to wake
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._wakes.wake)

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
