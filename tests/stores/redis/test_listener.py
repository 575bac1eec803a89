"""News from other processes: heard at once, looked for each second when it cannot be heard, and heard again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.redis.asking import ask
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from tests.redis.proxy import Proxy
from windlass.core.topics import ENDS, FLAGS, Hub, Topic, queue_topic
from windlass.kit import listening as kit
from windlass.store_url import parse
from windlass.stores.redis.address import read_address
from windlass.stores.redis.keys import channel_of, prefix_of
from windlass.stores.redis.listener import Listener
from windlass.stores.redis.options import Options
from windlass.stores.redis.runner import Runner
from windlass.system import SystemClock

EMAIL = queue_topic("email")


def options_of(url: str) -> Options:
    parts = parse(url, ["redis"])
    return read_address(parts.scheme, parts.host, parts.path, parts.options)


class House:
    """A listener of a store of its own, with one who listens."""

    def __init__(self, url: str) -> None:
        options = options_of(url)
        self.url = url
        self.channel = channel_of(options.prefix)
        self.hub = Hub()
        self.runner = Runner(options, SystemClock(), self.hub)
        prefix = prefix_of(options.prefix)
        self.listener = Listener(options, self.runner, self.hub, prefix=prefix, channel=self.channel)
        self.heard: dict[Topic, int] = dict.fromkeys((EMAIL, ENDS, FLAGS), 0)
        self._stops = [self.hub.listen([topic], self._ring(topic)) for topic in self.heard]
        self._rung = asyncio.Event()

    async def connected(self) -> None:
        async with asyncio.timeout(20):
            while not self.listener.connected:  # noqa: ASYNC110 - a listener tells nobody that it is ready
                await asyncio.sleep(0.005)

    async def until(self, what: Callable[[], bool], within: float = 20.0) -> None:
        async with asyncio.timeout(within):
            while not what():
                self._rung.clear()
                await self._rung.wait()

    def tell(self, *topics: Topic, of: str = "somebody", url: str | None = None) -> int:
        """Tell news as another process does; return how many have heard it."""
        heard: int = ask(url or self.url, "PUBLISH", self.channel, " ".join((of, *topics)))
        return heard

    def nobody_listens(self) -> None:
        for stop in self._stops:
            stop()

    def _ring(self, topic: Topic) -> Callable[[], None]:
        def ring() -> None:
            self.heard[topic] += 1
            self._rung.set()

        return ring


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis() as private:
        yield private


@pytest.fixture
def url(private: PrivateRedis) -> str:
    return with_options(private.url, f"prefix={new_prefix()}")


@pytest.fixture
async def house(url: str) -> AsyncIterator[House]:
    house = House(url)
    yield house
    await house.listener.close()


def subscribers(private: PrivateRedis) -> set[str]:
    """Return who is subscribed to anything."""
    clients: str = private.ask("CLIENT", "LIST", "TYPE", "PUBSUB")
    return {line.split()[0] for line in clients.splitlines() if line}


async def test_news_is_heard_by_those_whom_it_concerns(house: House) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    assert house.tell(EMAIL, queue_topic("other")) == 1
    await house.until(lambda: house.heard[EMAIL] > before[EMAIL])
    house.tell(ENDS)
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard == {EMAIL: before[EMAIL] + 1, ENDS: before[ENDS] + 1, FLAGS: before[FLAGS]}


async def test_whoever_listened_before_the_listener_was_connected_is_rung(house: House) -> None:
    house.listener.start()
    await house.connected()

    assert house.heard == {EMAIL: 1, ENDS: 1, FLAGS: 1}


async def test_our_own_news_does_not_come_back_to_us(house: House) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    house.tell(EMAIL, of=house.runner.name)
    house.tell(ENDS)
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard[EMAIL] == before[EMAIL]


async def test_news_of_another_store_is_not_heard(house: House, private: PrivateRedis) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)
    other = House(with_options(private.url, f"prefix={new_prefix()}"))

    assert other.tell(EMAIL) == 0
    house.tell(ENDS)
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard[EMAIL] == before[EMAIL]


async def test_no_connection_is_kept_while_nobody_listens(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)
    house.listener.start()
    await house.connected()

    house.nobody_listens()
    async with asyncio.timeout(20):
        while house.listener.connected:  # noqa: ASYNC110 - it tells nobody that it rests
            await asyncio.sleep(0.005)
    house.hub.listen([EMAIL], lambda: None)
    house.listener.start()

    await house.connected()


async def test_a_lost_connection_is_opened_again_and_everybody_looks(
    house: House, private: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.redis")
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    assert private.ask("CLIENT", "KILL", "TYPE", "pubsub") == 1
    await house.until(lambda: all(house.heard[topic] > before[topic] for topic in before), within=5)
    await house.connected()
    again = dict(house.heard)
    house.tell(EMAIL)
    await house.until(lambda: house.heard[EMAIL] > again[EMAIL])

    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "INFO"]
    assert "everybody looks each second" in said[0][1]
    assert "heard again" in said[1][1]


async def test_while_nothing_is_heard_everybody_looks_again_and_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)
    house = House("redis://127.0.0.1:1/0?prefix=none")

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 5)
    await house.listener.close()

    assert [record.levelname for record in caplog.records if record.name == "windlass.redis"] == ["WARNING"]


async def test_a_connection_that_has_gone_dead_without_a_word_is_found_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.05)
    monkeypatch.setattr(Listener, "answer_within", 0.5)
    monkeypatch.setattr(kit, "RING_EVERY", 0.1)
    async with Proxy(url) as proxy:
        house = House(proxy.url)
        house.listener.start()
        await house.connected()
        before = dict(house.heard)

        proxy.hold()
        await house.until(lambda: house.heard[FLAGS] > before[FLAGS])
        found_out = not house.listener.connected
        proxy.release()
        await house.connected()
        again = dict(house.heard)
        house.tell(EMAIL, url=url)
        await house.until(lambda: house.heard[EMAIL] > again[EMAIL])
        await house.listener.close()

    assert found_out


async def test_a_silent_connection_that_answers_is_kept(
    house: House, private: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.005)
    house.listener.start()
    await house.connected()
    listening = subscribers(private)
    before = int(private.ask("INFO", "commandstats")["cmdstat_ping"]["calls"])

    async with asyncio.timeout(20):
        while int(private.ask("INFO", "commandstats")["cmdstat_ping"]["calls"]) < before + 20:  # noqa: ASYNC110
            await asyncio.sleep(0.006)

    assert (len(listening), subscribers(private)) == (1, listening)


async def test_many_news_at_once_are_all_heard(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    # looks whether the server is there come in between
    monkeypatch.setattr(Listener, "check_after", 0.0001)
    house.listener.start()
    await house.connected()
    before = house.heard[EMAIL]

    def tell_all() -> None:
        for _ in range(100):
            house.tell(EMAIL, *[queue_topic("x" * 200)] * 20)

    telling = asyncio.create_task(asyncio.to_thread(tell_all))
    await house.until(lambda: house.heard[EMAIL] == before + 100)

    await telling


async def test_after_close_nothing_is_left(house: House, private: PrivateRedis) -> None:
    house.listener.start()
    await house.connected()
    assert len(subscribers(private)) == 1

    await house.listener.close()
    house.listener.start()

    assert not house.listener.connected
    async with asyncio.timeout(20):
        while subscribers(private):  # noqa: ASYNC110 - the server signals no event here
            await asyncio.sleep(0.005)
