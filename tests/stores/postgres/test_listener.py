"""News from other processes: heard at once, looked for each second when it cannot be heard, and heard again."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable

import pytest

from tests.postgres.cluster import cluster, dsn_of
from tests.postgres.proxy import Proxy
from tests.stores.postgres.shell import end_sessions, options_of
from windlass.core.topics import ENDS, FLAGS, Hub, Topic, lock_topic, queue_topic
from windlass.kit import listening as kit
from windlass.stores.postgres.channels import Channels, channels_of, letters, topics_in
from windlass.stores.postgres.listener import Listener
from windlass.stores.postgres.options import Options

EMAIL = queue_topic("email")


class House:
    """A listener of a store of its own, with one who listens."""

    def __init__(self, options: Options, *, pooled: bool = False) -> None:
        self.before = cluster().sessions()
        self.store_id = secrets.token_hex(8)
        self.channels = channels_of(self.store_id)
        self.hub = Hub()
        self.listener = Listener(options, self.hub, store_id=self.store_id, pooled=pooled)
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

    def notify(self, topics: list[Topic]) -> None:
        """Tell news as another process does."""
        for channel, payload in letters(self.channels, topics):
            cluster().run("select pg_notify(%s, %s)", [channel, payload])

    def nobody_listens(self) -> None:
        for stop in self._stops:
            stop()

    def _ring(self, topic: Topic) -> Callable[[], None]:
        def ring() -> None:
            self.heard[topic] += 1
            self._rung.set()

        return ring


@pytest.fixture
async def house(schema: str) -> AsyncIterator[House]:
    house = House(options_of(schema))
    yield house
    await house.listener.close()


def listening(house: House) -> set[int]:
    """The server processes that were started since."""
    return cluster().sessions() - house.before


async def test_news_is_heard_by_those_whom_it_concerns(house: House) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    house.notify([EMAIL, queue_topic("other")])
    await house.until(lambda: house.heard[EMAIL] > before[EMAIL])
    house.notify([ENDS])
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard == {EMAIL: before[EMAIL] + 1, ENDS: before[ENDS] + 1, FLAGS: before[FLAGS]}


async def test_whoever_listened_before_the_listener_was_connected_is_rung(house: House) -> None:
    house.listener.start()
    await house.connected()

    assert house.heard == {EMAIL: 1, ENDS: 1, FLAGS: 1}


async def test_news_that_is_too_long_to_name_rings_everybody(house: House) -> None:
    house.listener.start()
    await house.connected()

    house.notify([queue_topic(f"queue-{number:05}") for number in range(1000)])

    await house.until(lambda: all(count > 1 for count in house.heard.values()))


async def test_our_own_news_does_not_come_back_to_us(house: House) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    [(channel, payload)] = letters(house.channels, [EMAIL])
    assert await house.listener.tell(channel, payload)
    house.notify([ENDS])
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard[EMAIL] == before[EMAIL]


async def test_news_of_another_store_is_not_heard(house: House, schema: str) -> None:
    other = House(options_of(schema))
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    other.notify([EMAIL])
    house.notify([ENDS])
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
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.postgres")
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    end_sessions(cluster(), listening(house))
    await house.until(lambda: all(house.heard[topic] > before[topic] for topic in before), within=5)
    await house.connected()
    again = dict(house.heard)
    house.notify([EMAIL])
    await house.until(lambda: house.heard[EMAIL] > again[EMAIL])

    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "INFO"]
    assert "everybody looks each second" in said[0][1]
    assert "heard again" in said[1][1]


async def test_while_nothing_is_heard_everybody_looks_again_and_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)
    house = House(Options("postgresql://postgres@127.0.0.1:1/app"))

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 5)
    await house.listener.close()

    assert [record.levelname for record in caplog.records if record.name == "windlass.postgres"] == ["WARNING"]


@pytest.mark.parametrize("options, pooled", [({"notify": False}, False), ({}, True)])
async def test_without_notification_everybody_looks_again_and_again(
    schema: str, options: dict[str, object], pooled: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)
    house = House(options_of(schema, **options), pooled=bool(pooled))
    before = cluster().sessions()

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 3)
    sessions, told = cluster().sessions(), await house.listener.tell(house.channels.ready, "[]")
    await house.listener.close()

    assert (sessions, told) == (before, False)


async def test_a_pooler_that_nobody_told_of_is_noticed(
    pooled_schema: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.postgres")
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)
    house = House(options_of(pooled_schema))

    house.listener.start()
    async with asyncio.timeout(20):
        while "through a pooler" not in caplog.text:  # noqa: ASYNC110 - only the log tells
            await asyncio.sleep(0.005)
    await house.until(lambda: house.heard[FLAGS] >= 3)
    connected = house.listener.connected
    await house.listener.close()

    assert not connected


@pytest.mark.slow
async def test_a_connection_that_has_gone_dead_without_a_word_is_found_out(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.05)
    monkeypatch.setattr(Listener, "answer_within", 1.0)
    async with Proxy(dsn_of(schema)) as proxy:
        house = House(Options(proxy.url))
        house.listener.start()
        await house.connected()
        before = dict(house.heard)

        proxy.hold()
        await house.until(lambda: house.heard[FLAGS] > before[FLAGS])
        found_out = not house.listener.connected
        proxy.release()
        await house.connected()
        again = dict(house.heard)
        house.notify([EMAIL])
        await house.until(lambda: house.heard[EMAIL] > again[EMAIL])
        await house.listener.close()

    assert found_out


async def test_a_silent_connection_that_answers_is_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.005)
    house.listener.start()
    await house.connected()
    pids = listening(house)

    await asyncio.gather(*(house.listener.tell(house.channels.other, "[]") for _ in range(20)))
    for _ in range(10):
        await asyncio.sleep(0.006)

    assert listening(house) == pids


async def test_after_close_nothing_is_left(house: House) -> None:
    house.listener.start()
    await house.connected()
    pids = listening(house)

    await house.listener.close()
    house.listener.start()

    assert not house.listener.connected
    async with asyncio.timeout(20):
        while cluster().sessions() & pids:  # noqa: ASYNC110 - the server signals no event here
            await asyncio.sleep(0.005)


def test_news_is_parted_by_who_wants_it() -> None:
    channels = Channels("ready", "other")

    assert letters(channels, [EMAIL, ENDS, queue_topic("a")]) == [
        ("ready", '["queue:a","queue:email"]'),
        ("other", '["ends"]'),
    ]
    assert letters(channels, []) == []


def test_a_letter_is_never_longer_than_postgres_takes() -> None:
    names = [lock_topic("x" * 200 + str(number)) for number in range(100)]

    assert letters(Channels("ready", "other"), names) == [("other", "[]")]


def test_what_cannot_be_read_may_be_anything() -> None:
    assert topics_in('["ends"]') == [ENDS]
    assert [topics_in(payload) for payload in ("[]", "", "{", "7", '{"a": 1}')] == [None] * 5


def test_a_store_has_channels_of_its_own_that_postgres_can_name() -> None:
    one, other = channels_of("one"), channels_of("other")

    assert len({*one, *other}) == 4
    assert all(len(name) < 64 and name.islower() for name in (*one, *other))
