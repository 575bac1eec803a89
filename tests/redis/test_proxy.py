"""Every trouble that the proxy makes, as a driver sees it that knows nothing of ours."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import pytest
from redis import asyncio as driver
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import ResponseError

from tests.redis.asking import dsn_of
from tests.redis.frames import Request, command, read_value
from tests.redis.keys import prefix_of
from tests.redis.proxy import Proxy
from tests.redis.server import new_url

Client: TypeAlias = Any  # the driver's types do not tell what is to be awaited


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as url:
        yield url


@pytest.fixture
def key(url: str) -> str:
    return f"{{{prefix_of(url)}}}|numbers"


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy


@asynccontextmanager
async def connected(url: str, *, protocol: int = 3) -> AsyncGenerator[Client]:
    """One connection, which no command is sent through twice."""
    client: Any = driver.Redis
    never = Retry(NoBackoff(), 0)
    async with client.from_url(
        dsn_of(url), protocol=protocol, decode_responses=True, single_connection_client=True, retry=never
    ) as client:
        yield client


@pytest.fixture
async def direct(url: str) -> AsyncIterator[Client]:
    """A client past the proxy."""
    async with connected(url) as client:
        yield client


@pytest.fixture(params=[2, 3])
async def client(proxy: Proxy, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client through the proxy, in either version of the protocol."""
    async with connected(proxy.url, protocol=request.param) as client:
        yield client


def pushes(request: Request) -> bool:
    return request.name == b"RPUSH"


async def seen_meanwhile(direct: Client, key: str) -> list[str]:
    """Return what is there after so many questions that whatever was on its way has arrived."""
    return [number for _ in range(20) for number in await direct.lrange(key, 0, -1)]


async def test_what_passes_is_counted_but_for_what_is_of_the_connection(proxy: Proxy, client: Client, key: str) -> None:
    await client.ping()
    await client.rpush(key, 1, 2)

    assert await client.lrange(key, 0, -1) == ["1", "2"]
    assert (proxy.requests, proxy.answers) == (2, 2)


async def test_a_dropped_reply_is_of_something_that_was_done(
    proxy: Proxy, client: Client, direct: Client, key: str
) -> None:
    lost = proxy.drop_reply(pushes)

    with pytest.raises(Lost):
        await client.rpush(key, 1)

    assert lost.is_set()
    assert await direct.lrange(key, 0, -1) == ["1"]


async def test_the_reply_of_the_nth_command_is_dropped_where_many_are_sent_at_once(
    proxy: Proxy, client: Client, direct: Client, key: str
) -> None:
    lost = proxy.drop_reply(2)
    many = client.pipeline(transaction=False)
    for number in (1, 2, 3):
        many.rpush(key, number)

    with pytest.raises(Lost):
        await many.execute()

    assert lost.is_set()
    assert proxy.answers == 2
    # what was sent after it may have been done as well
    assert (await direct.lrange(key, 0, -1))[:2] == ["1", "2"]


async def test_a_dropped_request_is_not_done(proxy: Proxy, client: Client, direct: Client, key: str) -> None:
    lost = proxy.drop_request(2)
    await client.rpush(key, 1)

    with pytest.raises(Lost):
        await client.rpush(key, 2)

    assert lost.is_set()
    assert await direct.lrange(key, 0, -1) == ["1"]


async def test_a_failed_request_is_not_done_and_its_connection_goes_on(proxy: Proxy, client: Client, key: str) -> None:
    failed = proxy.fail(pushes, "MISCONF Errors writing to the AOF file: No space left on device")

    with pytest.raises(ResponseError, match=r"^MISCONF Errors writing"):
        await client.rpush(key, 1)

    assert failed.is_set()
    assert await client.rpush(key, 2) == 1


async def test_nothing_passes_while_it_is_held(proxy: Proxy, client: Client, direct: Client, key: str) -> None:
    await client.ping()
    proxy.hold()

    push = asyncio.ensure_future(client.rpush(key, 1))

    assert await seen_meanwhile(direct, key) == []
    # it has come as far as the proxy
    assert (proxy.requests, push.done()) == (1, False)
    proxy.release()
    assert await asyncio.wait_for(push, 10) == 1


async def test_a_held_answer_is_of_something_that_was_done(
    proxy: Proxy, client: Client, direct: Client, key: str
) -> None:
    await client.ping()
    proxy.hold(["answers"])

    push = asyncio.ensure_future(client.rpush(key, 1))

    assert await direct.blpop([key], timeout=10) == [key, "1"]
    assert await seen_meanwhile(direct, key) == []
    assert not push.done()
    proxy.release()
    assert await asyncio.wait_for(push, 10) == 1


async def test_an_answer_is_cut_at_any_byte(proxy: Proxy, direct: Client, key: str) -> None:
    await direct.rpush(key, *range(100))
    # each number with its length, and how many they are
    whole = len("*100\r\n") + 10 * len("$1\r\n0\r\n") + 90 * len("$2\r\n10\r\n")
    for size in [0, whole - 1, *random.Random(1).sample(range(1, whole - 1), 10)]:
        async with connected(proxy.url) as client:
            await client.ping()
            proxy.cut_after(size)

            with pytest.raises(Lost):
                await client.lrange(key, 0, -1)

            assert not proxy.left

    async with connected(proxy.url) as client:
        await client.ping()
        proxy.cut_after(whole)
        assert len(await client.lrange(key, 0, -1)) == 100
        with pytest.raises(Lost):
            await client.llen(key)


async def test_a_request_that_is_cut_is_not_done(proxy: Proxy, client: Client, direct: Client, key: str) -> None:
    await client.ping()
    proxy.cut_after(random.Random(2).randrange(len(key) + 10), "requests")

    with pytest.raises(Lost):
        await client.rpush(key, 1)

    assert await direct.lrange(key, 0, -1) == []


@pytest.mark.parametrize("protocol", ["2", "3"])
async def test_what_a_subscriber_is_told_is_no_answer(
    proxy: Proxy, direct: Client, key: str, protocol: Literal["2", "3"]
) -> None:
    lost = proxy.drop_reply(3)
    channels = (f"{key}|a", f"{key}|b")
    # an answer may begin as a message does where messages have a type of their own
    told, word = {"2": (b"*", "word"), "3": (b">", "message")}[protocol]
    push, look = command("RPUSH", key, word), command("LRANGE", key, "0", "-1")
    parts = urlsplit(proxy.url)
    login = ("AUTH", parts.username or "default", unquote(parts.password)) if parts.password else ()
    database = parts.path.strip("/") or "0"
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)

    async with asyncio.timeout(10):
        writer.write(command("HELLO", protocol, *login) + command("SELECT", database) + command("SUBSCRIBE", *channels))
        assert (await types_of(reader, 2))[1] == b"+"
        assert await types_of(reader, 2) == [told] * 2
        await direct.publish(channels[1], "news")
        message = await read_value(reader)
        writer.write(command("UNSUBSCRIBE", *channels) + push + look + push)
        assert await types_of(reader, 4) == [told, told, b":", b"*"]
        with pytest.raises(ConnectionResetError):
            await reader.read()

    assert message is not None
    assert (message.type, message.texts) == (told, (b"message", channels[1].encode(), b"news"))
    assert lost.is_set()
    assert await direct.lrange(key, 0, -1) == [word] * 2
    writer.close()


async def types_of(reader: asyncio.StreamReader, count: int) -> list[bytes]:
    return [value.type for _ in range(count) if (value := await read_value(reader))]


@pytest.mark.parametrize(
    "whole",
    [
        b"+OK\r\n",
        b"-ERR no such thing\r\n",
        b":-7\r\n",
        b"_\r\n",
        b"#t\r\n",
        b",1.5\r\n",
        b"(12345678901234567890\r\n",
        b"$0\r\n\r\n",
        b"$-1\r\n",
        b"$4\r\n\r\n$1\r\n",
        b"!9\r\nERR wrong\r\n",
        b"=7\r\ntxt:abc\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n*1\r\n:1\r\n$1\r\na\r\n",
        b"~1\r\n+a\r\n",
        b"%1\r\n+a\r\n*1\r\n:1\r\n",
        b">2\r\n+message\r\n+a\r\n",
        b"|1\r\n+ttl\r\n:3600\r\n*1\r\n:1\r\n",
    ],
)
async def test_a_value_ends_where_the_next_begins(whole: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(whole + b"+next\r\n")
    reader.feed_eof()

    values = [await read_value(reader) for _ in range(3)]

    assert [value and value.whole for value in values] == [whole, b"+next\r\n", None]
