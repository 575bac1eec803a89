"""News to other processes: together where it can be, beside the work, and never in anybody's way."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.postgres.cluster import dsn_of
from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from tests.stores.postgres.shell import options_of
from windlass.core.topics import ENDS, Hub, queue_topic
from windlass.stores.postgres import notifier as module
from windlass.stores.postgres.channels import channels_of
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.listener import Listener
from windlass.stores.postgres.notifier import Notifier
from windlass.stores.postgres.options import Options


class House:
    """A notifier, and another process's ear."""

    def __init__(self, options: Options) -> None:
        store_id = secrets.token_hex(8)
        self.channels = channels_of(store_id)
        self.hub = Hub()
        self.connections = Connections(options)
        self.listener = Listener(options, self.hub, store_id=store_id, pooled=False)
        self.notifier = Notifier(options, self.connections, self.listener, store_id=store_id)
        self.letters: asyncio.Queue[tuple[int, list[str]]] = asyncio.Queue()

    async def open(self, url: str) -> None:
        self._ear: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(dsn_of(url))
        for channel in self.channels:
            await self._ear.add_listener(channel, self._hear)

    async def close(self) -> None:
        await self.notifier.close()
        await self.listener.close()
        await self.connections.close()
        await self._ear.close()

    async def heard(self) -> list[str]:
        async with asyncio.timeout(20):
            return (await self.letters.get())[1]

    def _hear(self, _: object, pid: int, __: str, payload: object) -> None:
        self.letters.put_nowait((pid, json.loads(str(payload))))


@pytest.fixture
async def house(schema: str) -> AsyncIterator[House]:
    house = House(options_of(schema))
    await house.open(schema)
    yield house
    await house.close()


async def test_news_reaches_other_processes(house: House) -> None:
    house.notifier.tell({queue_topic("email"), queue_topic("other")})

    assert await house.heard() == ["queue:email", "queue:other"]


async def test_jobs_and_other_news_go_by_different_channels(house: House) -> None:
    house.notifier.tell({queue_topic("email"), ENDS})

    assert sorted([await house.heard(), await house.heard()]) == [["ends"], ["queue:email"]]


async def test_news_of_one_moment_goes_together(house: House) -> None:
    for number in range(100):
        house.notifier.tell({queue_topic(f"{number:02}")})

    assert await house.heard() == [f"queue:{number:02}" for number in range(100)]


async def test_what_gathers_after_the_first_was_sent_goes_together(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GATHER_FOR", 0.5)
    house.notifier.tell({queue_topic("first")})
    first = await house.heard()

    for number in range(10):
        house.notifier.tell({queue_topic(str(number))})
        await asyncio.sleep(0)

    assert first == ["queue:first"]
    assert await house.heard() == [f"queue:{number}" for number in range(10)]


async def test_the_listeners_connection_is_used_while_there_is_one(house: House) -> None:
    house.hub.listen([ENDS], lambda: None)
    house.listener.start()
    async with asyncio.timeout(20):
        while not house.listener.connected:  # noqa: ASYNC110 - a listener tells nobody that it is ready
            await asyncio.sleep(0.005)

    house.notifier.tell({ENDS})
    pid, _ = await house.letters.get()

    async with house.connections.session(asyncio.get_running_loop().time() + 20) as session:
        assert session.pid != pid


async def test_with_notification_off_nothing_is_sent(schema: str) -> None:
    house = House(options_of(schema, notify=False))
    await house.open(schema)

    house.notifier.tell({ENDS})
    # a task of its own would have been started by now
    names = {task.get_name() for task in asyncio.all_tasks()}
    await house.close()

    assert "windlass notifier" not in names
    assert house.letters.empty()


async def test_news_that_cannot_be_sent_is_forgotten_and_the_next_is_sent(schema: str) -> None:
    def notifies(request: Request) -> bool:
        return "pg_notify" in request.text

    async with Proxy(dsn_of(schema)) as proxy:
        house = House(Options(proxy.url))
        await house.open(schema)
        lost = proxy.drop_request(notifies)

        house.notifier.tell({queue_topic("lost")})
        await lost.wait()
        house.notifier.tell({queue_topic("next")})
        heard = await house.heard()
        await house.close()

    assert heard == ["queue:next"]


async def test_close_sends_what_is_left(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_FOR", 0.2)
    house.notifier.tell({queue_topic("first")})
    await house.heard()
    house.notifier.tell({queue_topic("last")})

    await house.notifier.close()

    assert await house.heard() == ["queue:last"]


async def test_close_does_not_wait_long_for_a_server_that_does_not_answer(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_WITHIN", 0.05)
    async with Proxy(dsn_of(schema)) as proxy:
        house = House(Options(proxy.url))
        await house.open(schema)
        proxy.hold()
        house.notifier.tell({ENDS})

        await asyncio.wait_for(house.close(), 10)

    assert house.letters.empty()


async def test_news_goes_through_a_pooler_too(schema: str, pooled_schema: str) -> None:
    house = House(options_of(pooled_schema))
    await house.open(schema)

    house.notifier.tell({ENDS})
    heard = await house.heard()
    await house.close()

    assert heard == ["ends"]
