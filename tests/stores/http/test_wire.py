"""One connection that speaks HTTP: what it reads, what it refuses to read, and when it may be used again."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.stores.http.scripted import Line, Request, Scripted, hangs, in_steps, reply, says
from windlass.stores.http.reply import MOST_HEAD, NotHTTP, ReplyTooLarge
from windlass.stores.http.wire import MOST_UNHEARD, Wire, open_wire

HOST = b"host: here\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nWindlass-Serving: p\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def wire(server: Scripted) -> AsyncIterator[Wire]:
    wire = await open_wire(server.options())
    yield wire
    await wire.close()


async def asked(wire: Wire, body: bytes = b"x") -> bytes:
    async with asyncio.timeout(20):
        return (await wire.ask(b"POST", b"/", HOST, body)).body


async def hung_up(wire: Wire) -> None:
    async with asyncio.timeout(20):
        while not wire.closed:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


async def test_a_connection_is_used_again_and_again(server: Scripted, wire: Wire) -> None:
    for body in (b"one", b"", b"three" * 100_000):
        answer = await wire.ask(b"POST", b"/there", HOST, body)
        assert (answer.status, answer.serving, answer.body) == (200, "process-1", body or b"/there")
        assert not wire.broken

    assert [(each.method, each.target, each.connection) for each in server.requests] == [("POST", "/there", 1)] * 3
    assert wire.serving == "process-1"


async def test_a_look_has_no_body_and_says_no_length(server: Scripted, wire: Wire) -> None:
    await wire.ask(b"GET", b"/a?b=c", HOST)

    [request] = server.requests
    assert (request.method, request.target, request.headers) == ("GET", "/a?b=c", {"host": "here"})


async def test_headers_are_known_however_they_are_spelt(server: Scripted, wire: Wire) -> None:
    server.acts.append(says(b"HTTP/1.1 503 No\r\nRETRY-AFTER: 7\r\nlocation: /x\r\nContent-length:0\r\n\r\n"))

    answer = await wire.ask(b"POST", b"/", HOST)

    assert (answer.status, answer.retry_after, answer.location, answer.serving) == (503, "7", "/x", None)


@pytest.mark.parametrize(
    "data, body",
    [
        (reply(b"whole"), b"whole"),
        (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (CHUNKED + b"3;why=not\r\nabc\r\n0\r\nTrailer: late\r\n\r\n", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + reply(b"after"), b"after"),
        (b"HTTP/1.1 204 No Content\r\nWindlass-Serving: p\r\n\r\n", b""),
    ],
)
async def test_a_reply_may_come_in_pieces_of_any_size(server: Scripted, wire: Wire, data: bytes, body: bytes) -> None:
    for act in (says(data), in_steps(data), in_steps(data, 7)):
        server.acts.append(act)
        assert await asked(wire) == body
        assert not wire.broken

    assert await asked(wire, b"next") == b"next"
    assert server.opened == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"HTTP/1.1 2", reply(b"whole")[:-1], CHUNKED + b"3\r\nabc\r\n", b"HTTP/1.1 200 OK\r\n\r\nno length"],
)
async def test_a_reply_that_is_not_whole_is_a_lost_connection(server: Scripted, wire: Wire, data: bytes) -> None:
    server.acts.append(says(data, stays=False))

    with pytest.raises(ConnectionError):
        await asked(wire)

    assert wire.closed


async def test_a_refusal_without_a_length_ends_with_the_connection(server: Scripted, wire: Wire) -> None:
    server.acts.append(says(b"HTTP/1.0 404 Not Found\r\n\r\nno such page", stays=False))

    answer = await wire.ask(b"POST", b"/", HOST)

    assert (answer.status, answer.body) == (404, b"no such page")
    await hung_up(wire)


async def test_a_server_that_says_it_hangs_up_is_not_asked_again(server: Scripted, wire: Wire) -> None:
    server.acts.append(says(reply(b"last", Connection="close")))

    assert await asked(wire) == b"last"

    assert wire.broken


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"220 mail.example ESMTP\r\n",
        b"-ERR unknown command 'POST'\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA header\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_known_at_once(server: Scripted, wire: Wire, data: bytes) -> None:
    server.acts.append(hangs(server, data))

    with pytest.raises(NotHTTP):
        await asked(wire)

    assert wire.closed


async def test_garbage_of_a_server_that_was_understood_before_is_a_lost_connection(
    server: Scripted, wire: Wire
) -> None:
    await asked(wire)
    server.acts.append(hangs(server, b"\0" * 100))

    with pytest.raises(ConnectionError, match="garbled"):
        await asked(wire)

    assert wire.closed


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ",
    ],
)
async def test_a_reply_without_end_is_given_up(server: Scripted, begin: bytes) -> None:
    wire = await open_wire(server.options(), most=1_000_000)
    server.acts.append(hangs(server, begin + b"x" * 1_100_000))

    with pytest.raises(ReplyTooLarge, match="1,000,000"):
        await asked(wire)

    assert wire.closed


async def test_a_head_without_end_is_given_up(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server, b"HTTP/1.1 200 OK\r\nHeader: " + b"x" * MOST_HEAD))

    with pytest.raises(ReplyTooLarge, match="65,536"):
        await asked(wire)


async def test_a_large_reply_within_the_limit_is_read(server: Scripted, wire: Wire) -> None:
    body = bytes(range(256)) * 40_000
    server.acts.append(says(reply(body)))

    assert await asked(wire) == body


@pytest.mark.parametrize("surplus", [reply(b"another's"), b"HTTP/1.1 200", b"H", b"garbage"])
async def test_nobody_may_use_a_connection_on_which_more_was_said_than_asked_for(
    server: Scripted, wire: Wire, surplus: bytes
) -> None:
    server.acts.append(says(reply(b"mine") + surplus))

    assert await asked(wire) == b"mine"

    assert wire.broken


async def test_what_is_said_to_an_idle_connection_ends_it(server: Scripted, wire: Wire) -> None:
    await asked(wire)

    await server.lines[1].send(reply(b"time is over", 408))

    await hung_up(wire)


async def test_it_is_known_that_the_server_has_hung_up(server: Scripted, wire: Wire) -> None:
    await asked(wire)
    assert not wire.closed

    server.lines[1].writer.close()

    await hung_up(wire)
    with pytest.raises(ConnectionError):
        await asked(wire)


async def test_a_reply_that_was_left_alone_breaks_the_connection(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server))
    call = asyncio.create_task(asked(wire))
    await server.until_asked(1)

    call.cancel()
    await asyncio.wait([call])

    assert (wire.broken, wire.closed) == (True, False)


async def test_who_waits_is_told_when_the_connection_is_cut_off(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server))
    call = asyncio.create_task(asked(wire))
    await server.until_asked(1)

    wire.terminate()

    with pytest.raises(ConnectionError):
        await call
    assert wire.closed


async def test_a_stream_is_heard_piece_by_piece(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server, CHUNKED + b"3\r\none\r\n"))

    answer = await wire.begin(b"/news", HOST)
    first = await wire.hear()
    hearing = asyncio.create_task(wire.hear())
    await server.lines[1].send(b"3\r\ntwo\r\n")

    assert (answer.status, first, await hearing) == (200, b"one", b"two")
    assert wire.broken


async def test_what_came_before_the_end_of_a_stream_is_heard(server: Scripted, wire: Wire) -> None:
    server.acts.append(says(CHUNKED + b"3\r\none\r\n0\r\n\r\n"))
    await wire.begin(b"/news", HOST)
    await hung_up(wire)

    assert await wire.hear() == b"one"
    with pytest.raises(ConnectionError, match="the stream has ended"):
        await wire.hear()


async def test_a_stream_that_is_refused_is_a_whole_reply(server: Scripted, wire: Wire) -> None:
    server.acts.append(says(reply(b"why", 403)))

    answer = await wire.begin(b"/news", HOST)

    assert (answer.status, answer.body) == (403, b"why")


async def test_hearing_may_be_cancelled(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server, CHUNKED))
    await wire.begin(b"/news", HOST)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await wire.hear()
    await server.lines[1].send(b"3\r\none\r\n")

    assert await wire.hear() == b"one"


async def test_a_stream_that_nobody_hears_does_not_fill_the_memory(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server, CHUNKED))
    await wire.begin(b"/news", HOST)
    piece = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    sending = asyncio.create_task(server.lines[1].send(piece * 32))

    heard = most = 0
    async with asyncio.timeout(20):
        while heard < 32 << 20:
            size = len(await wire.hear())
            heard, most = heard + size, max(most, size)
            # as much as can come does so meanwhile
            for _ in range(50):
                await asyncio.sleep(0)
    await sending

    assert heard == 32 << 20
    assert most < MOST_UNHEARD + (1 << 20)


async def test_no_reply_by_the_deadline_breaks_the_connection(server: Scripted, wire: Wire) -> None:
    server.acts.append(hangs(server, CHUNKED))
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(TimeoutError):
        await wire.ask(b"POST", b"/", HOST, deadline=began + 0.05)

    assert 0.04 < loop.time() - began < 10
    assert wire.broken


async def test_each_call_has_a_deadline_of_its_own(server: Scripted, wire: Wire) -> None:
    loop = asyncio.get_running_loop()
    # the first has left a timer that rings while the second, which may take its time, waits
    await wire.ask(b"POST", b"/", HOST, deadline=loop.time() + 0.05)
    rang = asyncio.Event()
    loop.call_later(0.1, rang.set)

    async def late(_: Request, line: Line) -> bool:
        await rang.wait()
        await line.send(reply(b"late"))
        return True

    server.acts.append(late)
    assert (await wire.ask(b"POST", b"/", HOST, deadline=loop.time() + 20)).body == b"late"

    # and now it is the third, which may not
    server.acts.append(hangs(server))
    began = loop.time()
    with pytest.raises(TimeoutError):
        await wire.ask(b"POST", b"/", HOST, deadline=began + 0.05)
    assert loop.time() - began < 10
