"""An object store to which everything goes wrong: a proxy on loopback before an S3 server, in a thread of its own.

    with FaultyS3(endpoint, Faults(share=0.3), seed=1) as faulty:
        ...  # what works with faulty.endpoint
        faulty.go_away()
        ...  # connections are refused
        faulty.come_back()

A client signs for the host that it calls, and the server checks that by the header: which passes as it is.
"""

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self, TypeVar, assert_never
from urllib.parse import urlsplit

from proofs.slatedb.s3_faults import Fault, Faults, Plan
from tests.http.frames import Head, read_answer_body, read_head, read_request_body
from tests.redis.ports import free_port
from tests.servers.proxied import reset
from tests.slatedb.calls import call_of

T = TypeVar("T")

PATIENCE: Final = 30.0
PIECE: Final = 16
"""How many bytes pass at once where the line is slow."""
_CODES: Final = {"500": "InternalError", "503": "SlowDown", "429": "TooManyRequests", "403": "RequestTimeTooSkewed"}


class Done(NamedTuple):
    """What was done to a call: a fault, `passed`, or `no server` where there was none behind."""

    call: str
    what: str


class _Request(NamedTuple):
    call: str
    method: str
    target: str
    whole: bytes


class _Answer(NamedTuple):
    head: Head
    body: bytes


class FaultyS3:
    """Stands before the S3 server at `endpoint` while the block lasts; `calls` counts what it did to which calls."""

    def __init__(self, endpoint: str, faults: Faults | None = None, *, seed: int = 0) -> None:
        where = urlsplit(endpoint)
        self.calls: Counter[Done] = Counter()
        self.port: Final = free_port()
        self._to: Final = (where.hostname, where.port)
        self._plan: Final = Plan(faults or Faults(), seed)
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="faulty S3")
        self._server: asyncio.Server | None = None
        self._clients: Final[set[StreamWriter]] = set()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._errors: Final[list[Exception]] = []
        self._lists: Final[dict[str, _Answer]] = {}

    @property
    def endpoint(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def faults(self) -> Faults:
        """What goes wrong; see `change`."""
        return self._plan.faults

    @property
    def faulty(self) -> int:
        """How many calls something was done to."""
        return sum(number for (_, what), number in self.calls.items() if what != "passed")

    def change(self, faults: Faults) -> None:
        """Let other things go wrong from the next call on."""
        self._do(self._change(faults))

    def go_away(self) -> None:
        """Refuse connections, and reset those that there are."""
        self._do(self._stop_listening())

    def come_back(self) -> None:
        """Take connections again, on the same port."""
        self._do(self._listen())

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.come_back()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._do(self._close())
        finally:
            self._end()
        if self._errors:
            raise self._errors[0]

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _change(self, faults: Faults) -> None:
        self._plan.change(faults)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in [*self._clients]:
            reset(writer)

    async def _close(self) -> None:
        await self._stop_listening()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.ensure_future(self._live(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._errors.append(error)

    async def _live(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._clients.add(writer)
        line = _Line(self._plan, self._to, reader, writer, self._lists)
        try:
            # a client that goes away, and a server that does, are nothing to tell of
            with suppress(OSError, asyncio.IncompleteReadError):
                while request := await line.read():
                    fault = self._plan.fault(request.call)
                    if fault == "stale list" and request.target not in self._lists:
                        self._plan.put_back(request.call, fault)
                        fault = None
                    # counted first: who has the answer may look at once
                    done = Done(request.call, fault or "passed")
                    self.calls[done] += 1
                    try:
                        goes_on = await line.answer(request, fault)
                    except _NoServerError:
                        self.calls -= Counter([done])
                        self.calls[done._replace(what="no server")] += 1
                        break
                    if not goes_on:
                        break
        finally:
            self._clients.discard(writer)
            line.close()


class _NoServerError(Exception):
    """There is nobody behind, or no more."""


class _Line:
    """One connection of a client, and the one to the server that serves it."""

    def __init__(
        self,
        plan: Plan,
        to: tuple[str | None, int | None],
        reader: StreamReader,
        writer: StreamWriter,
        lists: dict[str, _Answer],
    ) -> None:
        """Share `lists`, the last answer to each call that asks for one, with all others."""
        self._plan = plan
        self._to = to
        self._reader = reader
        self._writer = writer
        self._server: tuple[StreamReader, StreamWriter] | None = None
        self._lists = lists
        self._refused = 0

    async def read(self) -> _Request | None:
        """Return the next request of the client."""
        head = await read_head(self._reader)
        if head is None:
            return None
        body = await read_request_body(self._reader, head)
        await self._travel(len(head.whole) + len(body))
        method, target, _ = (word.decode() for word in head.words)
        return _Request(call_of(method, target), method, target, head.whole + body)

    async def answer(self, request: _Request, fault: Fault | None) -> bool:
        """Do to a request what is planned for it; return whether the connection goes on."""
        faults = self._plan.faults
        match fault:
            case None:
                await self._give(await self._ask(request))
            case "500" | "503" | "429":
                await self._refuse(fault)
                return not faults.slow_close
            case "skewed":
                await self._refuse("403")
                return not faults.slow_close
            case "burst":
                self._refused += 1
                await self._refuse("500" if self._refused % 2 else "503")
                return not faults.slow_close
            case "stale list":
                await self._give(self._lists[request.target])
            case "held":
                await self._ask(request)
                # it ends when the client does
                await self._reader.read()
                return False
            case "slow":
                await asyncio.sleep(self._plan.seconds(faults.slow))
                await self._give(await self._ask(request))
            case "repeated":
                await self._ask(request)
                await self._give(await self._ask(request))
            case "truncated":
                answer = await self._ask(request)
                await self._give(answer._replace(body=answer.body[: len(answer.body) // 2]))
                return False
            case "lost answer":
                await self._ask(request)
                return False
            case "late answer":
                await self._ask(request)
                await asyncio.sleep(faults.late)
                return False
            case "reset":
                reset(self._writer)
                return False
            case "stall":
                await asyncio.sleep(faults.stall)
                reset(self._writer)
                return False
            case _:
                assert_never(fault)
        return True

    def close(self) -> None:
        """End both connections."""
        self._forget_server()
        self._writer.close()

    async def _refuse(self, status: str) -> None:
        slow_close = self._plan.faults.slow_close
        body = f"<Error><Code>{_CODES[status]}</Code><Message>by plan</Message></Error>"
        close = "connection: close\r\n" if slow_close else ""
        head = (
            f"HTTP/1.1 {status} Refused\r\n{close}content-type: application/xml\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        await self._send((head + body).encode())
        await asyncio.sleep(slow_close)

    async def _give(self, answer: _Answer) -> None:
        await self._send(answer.head.whole + answer.body)

    async def _send(self, whole: bytes) -> None:
        rate = self._plan.faults.bytes_per_second
        if rate is None:
            await self._travel(len(whole))
            self._writer.write(whole)
            await self._writer.drain()
            return
        for begin in range(0, len(whole), PIECE):
            await asyncio.sleep(PIECE / rate)
            self._writer.write(whole[begin : begin + PIECE])
            await self._writer.drain()

    async def _travel(self, size: int) -> None:
        faults = self._plan.faults
        seconds = faults.latency + self._plan.seconds(faults.jitter)
        if faults.bytes_per_second is not None:
            seconds += size / faults.bytes_per_second
        if seconds:
            await asyncio.sleep(seconds)

    async def _ask(self, request: _Request) -> _Answer:
        try:
            reader, writer = await self._connected()
            writer.write(request.whole)
            await writer.drain()
            head = await read_head(reader)
            if head is None:
                raise ConnectionResetError
            body = b"" if request.method == "HEAD" else await read_answer_body(reader, head)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._forget_server()
            raise _NoServerError from error
        if head.headers.get("connection", "").lower() == "close":
            self._forget_server()
        answer = _Answer(head, body)
        if request.call == "ListObjectsV2" and head.words[1] == b"200":
            self._lists[request.target] = answer
        return answer

    async def _connected(self) -> tuple[StreamReader, StreamWriter]:
        if self._server is None or self._server[0].at_eof():
            self._forget_server()
            self._server = await asyncio.open_connection(*self._to)
        return self._server

    def _forget_server(self) -> None:
        if self._server is not None:
            self._server[1].close()
            self._server = None
