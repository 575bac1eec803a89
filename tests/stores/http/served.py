"""A serving side behind a proxy, and stores in front of both."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.http.in_process import TOKEN, InProcess
from tests.http.proxy import ProxiedClient, Proxy
from tests.servers.proxied import Streams
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.system import SystemClock, SystemRng


class TellingProxy(Proxy):
    """A proxy that tells when a reply has come from the serving side, whatever becomes of it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.replied = asyncio.Event()

    def proxied(self, streams: Streams) -> ProxiedClient:
        return _Telling(self, streams)


class _Telling(ProxiedClient):
    def __init__(self, owner: TellingProxy, streams: Streams) -> None:
        super().__init__(owner, streams)
        self._replied = owner.replied

    async def answer(self, whole: bytes, *, ends: bool) -> None:
        self._replied.set()
        await super().answer(whole, ends=ends)


class Bench:
    """What is served, a proxy before it, a store that goes through that, and one that leads past it."""

    def __init__(self, serving: InProcess, proxy: TellingProxy, through: Store, direct: Store) -> None:
        self.serving = serving
        self.proxy = proxy
        self.through = through
        self.direct = direct

    async def restart(self) -> None:
        """Let another process take over, with the same jobs."""
        await self.serving.stop()
        await self.serving.start()


@asynccontextmanager
async def benched(behind: str = "memory://", options: str = "timeout=20") -> AsyncGenerator[Bench]:
    """Serve an empty store in memory, or the one at a URL."""
    serving = InProcess(behind, clock=SystemClock(), rng=SystemRng())
    async with AsyncExitStack() as stack:
        await serving.start()
        stack.push_async_callback(serving.stop)
        proxy = await stack.enter_async_context(TellingProxy(serving.url))
        stores = [open_store(f"{url}?{options}", token=TOKEN) for url in (proxy.url, serving.url)]
        for store in stores:
            await store.open()
            stack.push_async_callback(store.close)
        yield Bench(serving, proxy, *stores)
