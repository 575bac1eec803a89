"""News of the serving process: heard at once, looked for each second when it cannot be heard, and heard again."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.stores.http.running import told, turns
from tests.stores.http.scripted import Line, Request, Scripted, refuses
from windlass.core.topics import ENDS, FLAGS, Hub, Topic, lock_topic, queue_topic
from windlass.kit import listening as kit
from windlass.stores.http import listener as module
from windlass.stores.http.listener import LONGEST_QUERY, MOST_TOPICS, Listener, fitting

EMAIL = queue_topic("email/to all#1")
HEAD = (
    b"HTTP/1.1 200 OK\r\nWindlass-Serving: p\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class House:
    """A listener with one who listens, and the server that it hears."""

    def __init__(self, server: Scripted) -> None:
        self.server = server
        server.always = self._stream
        self.streams: dict[int, Line] = {}
        self.hub = Hub()
        self.listener = Listener(server.options(path="/team", token="abc"), self.hub, told)  # noqa: S106
        self.heard: dict[Topic, int] = {}
        self._stops: list[Callable[[], None]] = []
        self._changed = asyncio.Event()
        for topic in (EMAIL, ENDS, FLAGS):
            self.listen(topic)

    def listen(self, topic: Topic) -> Callable[[], None]:
        self.heard[topic] = 0

        def ring() -> None:
            self.heard[topic] += 1
            self._changed.set()

        stop = self.hub.listen([topic], ring)
        self._stops.append(stop)
        return stop

    def nobody_listens(self) -> None:
        for stop in self._stops:
            stop()

    def carried(self) -> list[set[str]]:
        """Return the topics that each stream was asked for."""
        return [set(parse_qs(urlsplit(request.target).query)["topic"]) for request in self.server.requests]

    async def tell(self, *topics: Topic) -> None:
        """Tell news on every stream."""
        await self.send(f"data: {json.dumps({'topics': topics})}\n\n".encode())

    async def send(self, data: bytes) -> None:
        for line in self.streams.values():
            await line.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def connected(self, *, connected: bool = True) -> None:
        async with asyncio.timeout(20):
            while self.listener.connected is not connected:  # noqa: ASYNC110 - a listener tells nobody
                await asyncio.sleep(0.001)

    async def until(self, what: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not what():
                self._changed.clear()
                await self._changed.wait()

    async def _stream(self, request: Request, line: Line) -> bool:
        await line.send(HEAD)
        self.streams[request.connection] = line
        self._changed.set()
        try:
            await line.reader.read()
        finally:
            del self.streams[request.connection]
            self._changed.set()
        return False


@pytest.fixture
async def house(server: Scripted) -> AsyncIterator[House]:
    house = House(server)
    yield house
    await house.listener.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "RING_EVERY", 0.02)


async def test_news_is_heard_by_those_whom_it_concerns(house: House) -> None:
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    await house.tell(EMAIL, queue_topic("other"))
    await house.until(lambda: house.heard[EMAIL] > before[EMAIL])
    await house.send(b": still here\n\n")
    await house.tell(ENDS)
    await house.until(lambda: house.heard[ENDS] > before[ENDS])

    assert house.heard == {EMAIL: before[EMAIL] + 1, ENDS: before[ENDS] + 1, FLAGS: before[FLAGS]}


async def test_a_stream_is_asked_for_what_somebody_listens_to(house: House) -> None:
    house.listener.start()
    await house.connected()

    [request] = house.server.requests
    assert (request.method, urlsplit(request.target).path) == ("GET", "/team/api/v1/news")
    assert (request.headers["accept"], request.headers["authorization"]) == ("text/event-stream", "Bearer abc")
    assert house.carried() == [{EMAIL, ENDS, FLAGS}]


async def test_whoever_listened_before_the_stream_was_there_is_rung(house: House) -> None:
    house.listener.start()
    await house.connected()

    assert house.heard == {EMAIL: 1, ENDS: 1, FLAGS: 1}


async def test_news_that_is_not_understood_is_for_everybody(house: House) -> None:
    house.listener.start()
    await house.connected()

    await house.send(b"data: what?\n\n")
    await house.until(lambda: house.heard == {EMAIL: 2, ENDS: 2, FLAGS: 2})


async def test_a_new_topic_is_heard_by_a_new_stream_which_drops_what_nobody_listens_to(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    new, gone = lock_topic("new"), queue_topic("gone")
    stop = house.listen(gone)
    house.listener.start()
    await house.connected()
    stop()
    before = dict(house.heard)

    house.listen(new)
    house.listener.start()
    await house.until(lambda: len(house.server.requests) == 2 and house.heard[new] > 0)
    await house.until(lambda: len(house.streams) == 1)
    again = house.heard[new]
    await house.tell(new)
    await house.until(lambda: house.heard[new] > again)

    assert house.carried() == [{EMAIL, ENDS, FLAGS, gone}, {EMAIL, ENDS, FLAGS, new}]
    # what was told between the two streams is looked for
    assert house.heard[ENDS] == before[ENDS] + 1
    assert caplog.text == ""


async def test_a_topic_that_comes_while_a_stream_is_opened_is_heard_too(house: House) -> None:
    house.listener.start()
    while not house.server.requests:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    new = queue_topic("new")
    house.listen(new)
    house.listener.start()

    await house.until(lambda: len(house.carried()) == 2 and house.heard[new] > 0)

    assert house.carried()[1] == {EMAIL, ENDS, FLAGS, new}


async def test_topics_that_come_together_are_one_new_stream(house: House) -> None:
    house.listener.start()
    await house.connected()

    new = [queue_topic(f"new-{number}") for number in range(50)]
    for topic in new:
        house.listen(topic)
        house.listener.start()
    await house.until(lambda: all(house.heard[topic] for topic in new))

    assert len(house.server.requests) == 2


async def test_topics_that_the_stream_tells_of_already_open_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REOPEN_AFTER", 0.0)
    house.listener.start()
    await house.connected()

    for _ in range(50):
        house.hub.listen([EMAIL], lambda: None)()
        house.listener.start()
        await turns(3)
    new = queue_topic("new")
    house.listen(new)
    house.listener.start()
    await house.until(lambda: house.heard[new] > 0)

    assert len(house.server.requests) == 2


@pytest.mark.usefixtures("quick")
async def test_no_stream_is_kept_while_nobody_listens(house: House) -> None:
    house.listener.start()
    await house.connected()

    house.nobody_listens()
    await house.connected(connected=False)
    await house.until(lambda: not house.streams)
    house.listen(EMAIL)
    house.listener.start()

    await house.connected()


async def test_a_lost_stream_is_opened_again_and_everybody_looks(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.http")
    house.listener.start()
    await house.connected()

    house.server.reset()
    await house.until(lambda: house.heard == {EMAIL: 2, ENDS: 2, FLAGS: 2})
    await house.until(lambda: len(house.streams) == 1)
    await house.tell(EMAIL)
    await house.until(lambda: house.heard[EMAIL] == 3)

    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "INFO"]
    assert "everybody looks each second" in said[0][1]
    assert "heard again" in said[1][1]


@pytest.mark.usefixtures("quick")
async def test_while_nothing_is_heard_everybody_looks_again_and_again(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.server.leave()

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 5)

    assert [record.levelname for record in caplog.records if record.name == "windlass.http"] == ["WARNING"]
    assert "start `windlass serve`" in caplog.text


@pytest.mark.usefixtures("quick")
async def test_a_stream_that_is_refused_is_told_of_and_not_asked_for_again_soon(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.server.always = refuses(401)

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 20)

    assert not house.listener.connected
    assert "refused the token" in caplog.text
    assert len(house.server.requests) == 1


async def test_a_server_that_is_not_ready_is_asked_again_soon(house: House) -> None:
    house.server.acts.extend([refuses(503), refuses(429)])

    house.listener.start()
    await house.connected()

    assert len(house.server.requests) == 3


@pytest.mark.usefixtures("quick")
async def test_a_server_is_left_alone_for_as_long_as_it_wants(house: House) -> None:
    house.server.always = refuses(503, Retry_After="30")

    house.listener.start()
    await house.until(lambda: house.heard[FLAGS] >= 20)

    assert len(house.server.requests) == 1


async def test_a_stream_that_has_gone_silent_is_given_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_FOR", 0.05)
    house.listener.start()

    await house.until(lambda: len(house.server.requests) >= 2)


async def test_a_server_that_answers_nothing_is_given_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "answer_within", 0.05)
    stream = house.server.always

    async def nothing(_: Request, line: Line) -> bool:
        house.server.always = stream
        await line.reader.read()
        return False

    house.server.always = nothing
    house.listener.start()

    await house.connected()
    assert len(house.server.requests) == 2


@pytest.mark.usefixtures("quick")
async def test_who_listens_to_a_topic_that_has_no_room_looks_each_second(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TOPICS", 2)
    monkeypatch.setattr(module, "REOPEN_AFTER", 0.0)
    house.listener.start()
    await house.connected()
    before = dict(house.heard)

    await house.until(lambda: house.heard[EMAIL] >= before[EMAIL] + 3)

    assert house.carried() == [{ENDS, FLAGS}]
    assert (house.heard[ENDS], house.heard[FLAGS]) == (before[ENDS], before[FLAGS])


def test_a_stream_is_asked_for_no_more_than_a_request_holds() -> None:
    short = [queue_topic(f"{number}") for number in range(MOST_TOPICS + 10)]
    long = [queue_topic(f"{'/' * 200}{number}") for number in range(1000)]

    assert fitting(short) == short[:MOST_TOPICS]
    assert 0 < len(fitting(long)) <= LONGEST_QUERY // 600
    assert fitting([ENDS]) == [ENDS]


async def test_after_close_nothing_is_left(house: House) -> None:
    house.listener.start()
    await house.connected()

    await house.listener.close()
    house.listener.start()

    assert not house.listener.connected
    await house.until(lambda: not house.streams)
