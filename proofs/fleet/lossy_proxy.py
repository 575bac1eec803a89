"""A proxy before a serving process that loses a share of all replies, in a thread of its own."""

import asyncio
import random
import threading
from collections import Counter
from typing import Final, Self

from tests.http.frames import Request
from tests.http.proxy import ProxiedClient, Proxy
from tests.servers.faults import Plan

PATIENCE: Final = 30.0


class LossyProxy(Proxy):
    """Loses the reply to a `share` of all requests: each is done, and its connection is reset then.

    Of as many requests for the same as make one loss it is any: so that none is spared in a short campaign.
    """

    def __init__(self, url: str, share: float, seed: int) -> None:
        super().__init__(url)
        self._one_in: Final = round(1 / share)
        self._chance = random.Random(seed)
        self._seen = Counter[str]()
        self._next: dict[str, int] = {}
        self._losses: list[tuple[str, Plan[Request]]] = []

    def planned(self, request: Request) -> Plan[Request] | None:
        plan = super().planned(request)
        if plan is None and request.runs and self._is_unlucky(request.path):
            plan = Plan[Request](1, "drop reply")
            self._losses.append((request.path, plan))
        return plan

    def _is_unlucky(self, path: str) -> bool:
        turn = self._seen[path] % self._one_in
        self._seen[path] += 1
        if turn == 0:
            self._next[path] = self._chance.randrange(self._one_in)
        return turn == self._next[path]

    @property
    def lost(self) -> Counter[str]:
        """How many replies came and were not given, by what was asked for."""
        return Counter(path for path, plan in self._losses if plan.done.is_set())

    def cut(self, *, busy: bool) -> str | None:
        """Reset a connection, with `busy` one that waits for an answer; return what it did, if there was one."""
        clients = [each for each in self.clients if isinstance(each, ProxiedClient) and (each.waits or not busy)]
        if not clients:
            return None
        victim = self._chance.choice(clients)
        state = "waits" if victim.waits else "idle"
        victim.reset()
        return state


class ProxyThread:
    """Runs a proxy while the block lasts."""

    def __init__(self, proxy: LossyProxy) -> None:
        self._proxy = proxy
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="proxy")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()

    @property
    def url(self) -> str:
        return self._proxy.url

    def cut(self, *, busy: bool) -> str | None:
        """Reset a connection; see `LossyProxy.cut`."""

        async def cut() -> str | None:
            return self._proxy.cut(busy=busy)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(cut(), self._loop).result(PATIENCE)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._proxy:
            self._ready.set()
            await self._over.wait()
