import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from tests.http.given_app import GivenApp, an_app, secret_of, until
from windlass.api.roles import Role
from windlass.http.listening import Listening

CONVERSATIONS = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def test_a_caller_who_hangs_up_ends_its_wait() -> None:
    async with an_app() as given, _served(given) as listening:
        _, writer = await _ask(listening, "POST", "/api/v1/claims", {"queues": ["q"], "wait": 60})
        await given.listened("queue:q")
        writer.close()
        await asyncio.wait_for(until(lambda: given.hub.silent), 20)
        await given.enqueued("q")

        assert (await given.client.stats("q")).pending == 1


async def test_a_stop_answers_those_who_wait_and_ends_streams() -> None:
    async with an_app() as given, _served(given) as listening:
        claiming, one = await _ask(listening, "POST", "/api/v1/claims", {"queues": ["q"], "wait": 60})
        hearing, other = await _ask(listening, "GET", "/api/v1/news?topic=ends")
        await given.listened("queue:q", "ends")
        await listening.stop()
        claimed, heard = await claiming.read(), await hearing.read()
        one.close()
        other.close()

    assert claimed.startswith(b"HTTP/1.1 200")
    assert claimed.endswith(b'{"claims":[]}')
    assert b": ok\n\n" in heard
    assert heard.endswith(b"0\r\n\r\n")


async def test_news_comes_over_a_socket_as_it_rings() -> None:
    async with an_app() as given, _served(given) as listening:
        reader, writer = await _ask(listening, "GET", "/api/v1/news?topic=queue:q")
        await reader.readuntil(b": ok\n\n")
        await given.enqueued("q")
        heard = await asyncio.wait_for(reader.readuntil(b"}\n\n"), 20)
        writer.close()

    assert heard.endswith(b'data: {"topics":["queue:q"]}\n\n')


async def test_requests_follow_each_other_on_one_connection() -> None:
    async with an_app() as given, _served(given) as listening:
        reader, writer = await _ask(listening, "POST", "/api/v1/jobs", {"jobs": [{"queue": "q"}]})
        first = await reader.readuntil(b'"created":true}]}')
        writer.write(_request("HEAD", "/health/live", None))
        second = await reader.readuntil(b"\r\n\r\n")
        writer.write(_request("GET", "/api/v1/queues", None))
        third = await reader.readuntil(b"}}]}")
        writer.close()

    assert all(reply.startswith(b"HTTP/1.1 200") for reply in (first, second, third))


@asynccontextmanager
async def _served(given: GivenApp) -> AsyncGenerator[Listening]:
    async with Listening(given.api, "127.0.0.1", 0, stopping=given.api.stop_waiting) as listening:
        yield listening


async def _ask(listening: Listening, method: str, target: str, json: object = None) -> CONVERSATIONS:
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
    writer.write(_request(method, target, json))
    return reader, writer


def _request(method: str, target: str, json: object) -> bytes:
    body = b"" if json is None else msgspec.json.encode(json)
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {secret_of(Role.ADMIN)}",
        *((f"Content-Length: {len(body)}", "Content-Type: application/json") if body else ()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
