"""A serving side in the process of a test, on its event loop: real sockets, the time and the chance of the test."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core.clock import Clock, Rng, Timer
from windlass.core.settings import QueueSettings, Settings, resolve
from windlass.core.store import Features, Store
from windlass.engine.config import ServerConfig
from windlass.engine.service import Service
from windlass.engine.services import upkeep
from windlass.http.app import Api
from windlass.http.auth import Identity
from windlass.http.listening import Listening
from windlass.http.services import ServingServices
from windlass.stores.http import HttpStore
from windlass.system import SystemClock, TaskSpawn
from windlass.testing.conformance.watched_store import WatchedStore

HOST: Final = "127.0.0.1"
TOKEN: Final = "wl_" + "t" * 43
GRACE: Final = 5.0


class OneToken:
    """Knows whoever has the one token, which allows everything."""

    _OWNER: Final = Identity("tester", frozenset(Role))

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        return self._OWNER if headers.get("authorization") == f"Bearer {TOKEN}" else None


class ShownTime:
    """Shows the time of another clock, and lets timers go by the system's: none of them is counted by a test."""

    goes_by_itself = True

    def __init__(self, shown: Clock) -> None:
        self._shown = shown
        self._clock = SystemClock()

    def now(self) -> datetime:
        return self._shown.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await self._clock.sleep(delay)


class InProcess:
    """Serves the store at a URL; after a stop it can be started again, on the same port, as another process would be.

    Services run only where a test has servers, beside each (see `testing.conformance.served.beside`), or with `upkeep`:
    then without a record of their own among the servers, which some tests count.
    """

    def __init__(self, url: str, *, clock: Clock, rng: Rng, upkeep: bool = False) -> None:
        self._behind = url
        self._clock = clock
        self._rng = rng
        self._upkeep = upkeep
        # one in memory lives as long as this
        self._in_memory = open_store(url, clock=clock, rng=rng) if url.startswith("memory:") else None
        # nobody asks there before it is started, and then it has another one
        self._port = 0
        self.doors = 0
        self.store: Store
        self._client: Client
        self._api: Api
        self._listening: Listening
        self._services: Sequence[Service] = ()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port or 1}"

    def door(self, **options: str) -> HttpStore:
        """Return a store in front of what is served, not opened yet."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        store = open_store(f"{self.url}?{query}" if query else self.url, rng=self._rng, token=TOKEN)
        assert isinstance(store, HttpStore)
        return store

    async def start(self) -> None:
        self.store = self._in_memory or open_store(self._behind, clock=self._clock, rng=self._rng)
        self._client = self._new_client(self.store, resolve(QueueSettings(), None), ShownTime(self._clock))
        self._api = Api(self._client, auth=OneToken())
        self._listening = Listening(self._api, HOST, self._port, stopping=self._api.stop_waiting)
        await self._client.open()
        if self._upkeep:
            self._services = self._new_services()
            for service in self._services:
                await service.start()
        await self._listening.start()
        self._port = self._listening.port

    async def stop(self, grace: float = GRACE) -> None:
        await self._listening.stop(grace)
        await self._api.close()
        for service in self._services:
            await service.stop()
        await self._client.close()

    @asynccontextmanager
    async def services(self, config: ServerConfig, settings: Settings) -> AsyncGenerator[WatchedStore]:
        """Run the services of a serving process, by the time of the test."""
        store = self.store.sibling()
        await store.open()
        watched: Any = WatchedStore(store)
        services = ServingServices(self._new_client(watched, settings, self._clock), config)
        try:
            await services.start()
            yield watched
        finally:
            await services.stop()
            await store.close()

    def _new_services(self) -> Sequence[Service]:
        config = ServerConfig()
        return upkeep(
            self.store,
            config.retention(self._client.settings),
            clock=self._clock,
            rng=self._rng,
            spawn=TaskSpawn(),
            rescue_interval=config.rescue_interval,
            prune_interval=config.prune_interval,
        )

    def _new_client(self, store: Store, settings: Settings, clock: Clock) -> Client:
        return Client(
            store,
            settings,
            codec=JSON,
            clock=clock,
            rng=self._rng,
            spawn=TaskSpawn(),
            poll_interval=1.0,
            worker="serving",
        )


class OwnServingSide:
    """A store that brings its serving side along: that is there while one of those in front of it is open."""

    def __init__(self, serving: InProcess) -> None:
        self._serving = serving
        self._door = serving.door()

    @property
    def features(self) -> Features:
        return self._door.features

    async def open(self) -> None:
        if not self._serving.doors:
            await self._serving.start()
        self._serving.doors += 1
        self._door = self._serving.door()
        await self._door.open()

    async def close(self) -> None:
        await self._door.close()
        self._serving.doors -= 1
        if not self._serving.doors:
            await self._serving.stop()

    def sibling(self) -> "OwnServingSide":
        return OwnServingSide(self._serving)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._door, name)
