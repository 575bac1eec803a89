"""What a server does beside its work: once at its start, and then in its own time."""

import asyncio
from collections import Counter
from typing import Any

from windlass import App, Server, ServerConfig
from windlass.core.looks import ServerRecord
from windlass.stores.memory import MemoryStore
from windlass.testing import FakeClock, SeededRng


class Counting(MemoryStore):
    """Counts what services do."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - whatever the store takes
        super().__init__(**given)
        self.calls: Counter[str] = Counter()

    async def beat(self, server: ServerRecord) -> None:
        self.calls["beat"] += 1
        await super().beat(server)

    async def ended_servers(self) -> list[str]:
        self.calls["rescue"] += 1
        return await super().ended_servers()


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_start_registers_and_rescues_once_and_then_at_each_interval() -> None:
    clock = FakeClock()
    store = Counting(clock=clock, rng=SeededRng())
    config = ServerConfig(heartbeat_interval=5, rescue_interval=5)

    async with App(store, clock=clock, rng=SeededRng()) as app, Server(app, config):
        await turns()
        at_the_start = dict(store.calls)
        clock.advance(5)
        await turns()

        assert at_the_start == {"beat": 1, "rescue": 1}
        assert store.calls == {"beat": 2, "rescue": 2}
