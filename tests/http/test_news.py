import asyncio

import pytest

from tests.http.given_app import LIMITED, an_app, until
from tests.http.streams import Stream, a_stream, time_passes
from windlass.api.roles import Role
from windlass.http import streaming
from windlass.testing import FakeClock
from windlass.testing.conformance.fixtures import soon


async def test_news_is_told_as_it_comes() -> None:
    async with an_app() as given, a_stream(given, "/news?topic=queue:a&topic=ends&topic=queue:b") as stream:
        assert await stream.parts.get() == b": ok\n\n"
        await given.enqueued("c")
        await given.enqueued("a")
        first = await stream.parts.get()
        await given.enqueued("b")
        second = await stream.parts.get()

    assert stream.headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert (stream.status, first, second) == (
        200,
        b'data: {"topics":["queue:a"]}\n\n',
        b'data: {"topics":["queue:b"]}\n\n',
    )


async def test_what_rings_for_a_slow_reader_is_told_together() -> None:
    async with an_app() as given, a_stream(given, "/news?topic=queue:a&topic=queue:b&topic=queue:c") as stream:
        await until(stream.parts.full)
        for queue in "abcabcabc":
            await given.enqueued(queue)
            await asyncio.sleep(0)

        assert await stream.parts.get() == b": ok\n\n"
        heard = await stream.parts.get()
        while not all(f"queue:{queue}".encode() in heard for queue in "abc"):
            heard += await stream.parts.get()
        # one may have been on its way when the rest rang
        assert heard.count(b"data:") <= 2


async def test_a_silent_stream_tells_that_it_lives() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given, a_stream(given, "/news?topic=ends") as stream:
        await stream.parts.get()
        for _ in range(2):
            await time_passes(clock, stream)
            assert await stream.parts.get() == b": still here\n\n"


async def test_a_stream_ends_for_whoever_is_no_longer_known() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given, a_stream(given, "/news?topic=ends") as stream:
        await stream.parts.get()
        given.tokens.tokens = []
        await time_passes(clock, stream)

        assert stream.ended.is_set()


async def test_a_stream_with_news_ends_for_whoever_is_no_longer_known_too() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given, a_stream(given, "/news?topic=queue:a") as stream:
        await stream.parts.get()
        await given.client.enqueue("a")
        await stream.parts.get()
        given.tokens.tokens = []
        for _ in range(3):
            clock.advance(streaming.STILL_HERE / 3)
            await given.client.enqueue("a")
            await _heard_or_ended(stream)

        assert stream.ended.is_set()


async def test_a_stop_ends_every_stream_and_takes_no_more() -> None:
    async with (
        an_app() as given,
        a_stream(given, "/news?topic=ends") as one,
        a_stream(given, "/news?topic=flags") as other,
    ):
        await asyncio.gather(one.parts.get(), other.parts.get())
        given.api.stop_waiting()
        await asyncio.gather(one.ended.wait(), other.ended.wait())

        assert (await given.get("/news?topic=ends")).status == 503


async def test_whoever_hangs_up_is_listened_for_no_more() -> None:
    async with an_app() as given:
        async with a_stream(given, "/news?topic=ends&topic=queue:a") as stream:
            await stream.parts.get()
            assert not given.hub.silent

        assert given.hub.silent
        assert not given.api.shared.streams


async def test_no_more_than_so_many_streams_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MOST_STREAMS", 1)
    async with an_app() as given, a_stream(given, "/news?topic=ends") as stream:
        await stream.parts.get()
        reply = await given.get("/news?topic=ends")

    assert (reply.status, reply.header("retry-after")) == (503, "1")


async def test_no_caller_takes_all_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MOST_OF_ONE", 1)
    async with an_app() as given:
        async with a_stream(given, "/news?topic=ends") as stream:
            await stream.parts.get()
            reply = await soon(given.get("/news?topic=ends", who=Role.VIEW))
            async with a_stream(given, "/news?topic=ends", Role.PRODUCE) as other:
                assert await soon(other.parts.get())

        assert (reply.status, reply.header("retry-after")) == (429, "1")
        assert not given.api.shared.streams_of


@pytest.mark.parametrize(
    "query", ["", "topic=", "topic=jobs", "topic=queue:", "topic=queue:a%20b", "topic=lock:ü", "a=b"]
)
async def test_a_topic_that_is_none_is_refused(query: str) -> None:
    async with an_app() as given:
        assert (await given.get(f"/news?{query}")).status == 422


async def test_who_is_limited_to_a_queue_hears_nothing_of_others() -> None:
    query = "topic=queue:theirs&topic=ends&topic=flags&topic=pauses&topic=schedules&topic=lock:l&topic=queue:mine"
    async with an_app() as given, a_stream(given, f"/news?{query}", LIMITED) as stream:
        await stream.parts.get()
        await given.enqueued("theirs")
        claims = await given.claimed("other")
        await given.client.cancel(claims[0]["job"]["id"])
        await given.client.pause("theirs")
        await given.enqueued("mine")

        assert await stream.parts.get() == b'data: {"topics":["queue:mine"]}\n\n'


async def _heard_or_ended(stream: Stream) -> None:
    await until(lambda: not stream.parts.empty() or stream.ended.is_set())
    if not stream.parts.empty():
        stream.parts.get_nowait()
