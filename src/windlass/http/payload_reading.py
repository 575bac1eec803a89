"""Reading of payloads in a thread, with a bound on the bytes in memory for each caller.

Payloads may have megabytes. To hide what is secret in them, and to write them as JSON, takes milliseconds each, in
which the event loop would answer no other request. A page of them is in memory until its reader has taken all of it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from windlass.core.clock import Clock
from windlass.http.refusal import too_many_requests
from windlass.kit.timeouts import call_with_timeout

A = TypeVar("A")
T = TypeVar("T")

AT_ONCE: Final = 8 * 1024
"""Bytes of payloads up to which the event loop does the work itself: handing it over would take longer."""
PIECE: Final = 256 * 1024
"""Bytes of payloads after which the thread is left to other callers."""
LARGEST_PAGE: Final = 16 * 1024 * 1024
"""Bytes of payloads and results that one reply may have."""
IN_FLIGHT: Final = 64 * 1024 * 1024
"""Bytes that the requests of one caller may hold at a time."""
LEAST_EXPECTED: Final = 64 * 1024
"""Bytes that are reserved for a request whose caller has read little of late."""
WAIT: Final = 10.0
"""Seconds that a request waits for others of its caller. Most end within milliseconds, and then a refusal costs more
than a wait; a reader that takes nothing holds its bytes for longer than that."""
MOST_WAITING: Final = 100
"""Requests of one caller that wait; of more each is refused at once."""
MOST_CALLERS: Final = 10_000


class _Caller:
    """What the requests of one caller hold together, and who of them waits."""

    def __init__(self) -> None:
        self.held = 0
        self.expected = LARGEST_PAGE
        """Bytes that its next request will probably hold: at first the most that it can."""
        self.requests = 0
        self.waiting: deque[tuple[int | None, asyncio.Future[int]]] = deque()
        self.turn = asyncio.Lock()
        """For the thread: one piece of each caller is in line there, so that callers take turns."""

    def reserve(self, wanted: int | None) -> int | None:
        """Take the bytes that are expected, or those that are wanted; None when there is no room."""
        size = self.expected if wanted is None else wanted
        if self.held and self.held + size > IN_FLIGHT:
            return None
        self.held += size
        return size

    def let_in(self) -> None:
        """Let those go on that wait, in their order, as far as there is room."""
        while self.waiting:
            wanted, future = self.waiting[0]
            if not future.done():
                reserved = self.reserve(wanted)
                if reserved is None:
                    return
                future.set_result(reserved)
            self.waiting.popleft()


class Reading:
    """One request that reads payloads: what it holds, and its work beside the event loop. It must be ended."""

    __slots__ = ("_begun", "_caller", "_name", "_readings", "_reserved", "size")

    def __init__(self, readings: "PayloadReading", name: str) -> None:
        self._readings = readings
        self._name = name
        self._caller: _Caller | None = None
        self._begun = False
        self._reserved = 0
        self.size = 0
        """Bytes that it has read."""

    async def begin(self, wanted: int | None = None) -> None:
        """Wait until there is room for a page, or for `wanted` bytes; refused when that takes too long."""
        if self._begun:
            return
        caller = self._known()
        reserved = None if caller.waiting else caller.reserve(wanted)
        self._reserved = await self._room(caller, wanted) if reserved is None else reserved
        self._begun = True

    def took(self, size: int) -> None:
        """Count bytes that were read."""
        self.size += size

    def done_reading(self) -> None:
        """Hold what was read, and no longer what was expected."""
        caller = self._caller
        if caller is None or not self._begun:
            return
        caller.held += self.size - self._reserved
        self._reserved = self.size
        # a caller who reads little lets more of its requests in, but not from one request to the next
        caller.expected = min(LARGEST_PAGE, max(self.size, caller.expected // 2, LEAST_EXPECTED))
        caller.let_in()

    async def work(self, size: int, work: Callable[[], T]) -> T:
        """Return what `work` does with so many bytes: here when they are few, else in the thread."""
        if size <= AT_ONCE:
            return work()
        async with self._known().turn:
            return await self._readings.in_thread(work)

    async def each(self, things: Sequence[A], size: Callable[[A], int], work: Callable[[A], T]) -> list[T]:
        """Return what `work` does with each of these things, some of them at a time."""
        sizes = [size(each) for each in things]
        if sum(sizes) <= AT_ONCE:
            return [work(each) for each in things]
        done: list[T] = []
        # one request of a caller after another: done together, all of them would end as late as the last
        async with self._known().turn:
            for some in _pieces(things, sizes):
                done += await self._readings.in_thread(partial(_all, work, some))
        return done

    def end(self) -> None:
        """Hold nothing more."""
        caller, self._caller = self._caller, None
        if caller is None:
            return
        caller.held -= self._reserved
        caller.requests -= 1
        self._reserved, self._begun = 0, False
        caller.let_in()

    def _known(self) -> _Caller:
        if self._caller is None:
            self._caller = self._readings.caller(self._name)
            self._caller.requests += 1
        return self._caller

    async def _room(self, caller: _Caller, wanted: int | None) -> int:
        message = f"the requests of {self._name} hold {IN_FLIGHT:,} bytes of payloads already"
        if len(caller.waiting) >= MOST_WAITING:
            raise too_many_requests(message, 1.0)
        room: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        caller.waiting.append((wanted, room))
        try:
            return await call_with_timeout(_got(room), WAIT, self._readings.clock)
        except BaseException as error:
            if not room.cancel() and not room.cancelled():
                # let in at the very moment at which it gave up
                caller.held -= room.result()
            caller.let_in()
            if isinstance(error, TimeoutError):
                raise too_many_requests(message, 1.0) from None
            raise


class PayloadReading:
    """All readings of one process, by the name of their caller.

    There is one thread. Python runs one at a time anyway, and with each further one the event loop would wait longer
    until it is its turn again.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._callers: OrderedDict[str, _Caller] = OrderedDict()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="windlass-payloads")

    def of(self, name: str) -> Reading:
        """Return the reading of one more request of this caller."""
        return Reading(self, name)

    @asynccontextmanager
    async def page(self, name: str, size: int) -> AsyncGenerator[Reading]:
        """Give the reading of a page for people, for which so many bytes are reserved."""
        reading = self.of(name)
        try:
            await reading.begin(size)
            yield reading
        finally:
            reading.end()

    def held(self, name: str) -> int:
        """Return how many bytes the requests of this caller hold."""
        known = self._callers.get(name)
        return 0 if known is None else known.held

    def caller(self, name: str) -> _Caller:
        """Return what is known of a caller."""
        known = self._callers.get(name)
        if known is None:
            known = self._callers[name] = _Caller()
            self._forget()
        self._callers.move_to_end(name)
        return known

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return what `work` does in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Let the thread end, without what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _forget(self) -> None:
        for name, known in list(self._callers.items())[: len(self._callers) - MOST_CALLERS]:
            if not known.requests:
                del self._callers[name]


def _all(work: Callable[[A], T], things: Sequence[A]) -> list[T]:
    return [work(each) for each in things]


async def _got(room: "asyncio.Future[int]") -> int:
    return await room


def _pieces(things: Sequence[A], sizes: Sequence[int]) -> Iterator[Sequence[A]]:
    """Give things some at a time: no more than a piece's bytes together, unless it is one thing."""
    begin, together = 0, 0
    for at, each in enumerate(sizes):
        if at > begin and together + each > PIECE:
            yield things[begin:at]
            begin, together = at, 0
        together += each
    yield things[begin:]
