"""Threads that plain functions run in."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

IDLE_FOR: Final = 30.0
"""Seconds after which a thread that nobody needs ends."""


class Ended(NamedTuple):
    """What a function returned, or what it raised."""

    value: Any
    error: BaseException | None = None


class Ends:
    """Ends of calls on their way to the event loop: one wake-up brings all that have gathered."""

    __slots__ = ("_loop", "_rung", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bring them to `loop`."""
        self._loop = loop
        self._rung = False
        self._waiting: deque[tuple[asyncio.Future[Ended], Ended]] = deque()

    def bring(self, waited: asyncio.Future[Ended], ended: Ended) -> None:
        """Resolve `waited` soon; from any thread."""
        # added before the look: whoever rang last clears the mark before it takes what is there
        self._waiting.append((waited, ended))
        if not self._rung:
            self._rung = True
            try:
                self._loop.call_soon_threadsafe(self._resolve)
            except RuntimeError:
                # a loop that was closed has nobody left who waits
                self._waiting.clear()

    def belong_to(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether they come to `loop`."""
        return self._loop is loop

    def _resolve(self) -> None:
        self._rung = False
        while self._waiting:
            waited, ended = self._waiting.popleft()
            if not waited.done():
                waited.set_result(ended)


class Work(NamedTuple):
    """One call, and where its end is waited for."""

    function: Callable[[], Any]
    context: Context
    ended: asyncio.Future[Ended]
    ends: Ends


class Threads:
    """Calls plain functions in daemon threads, which are made as needed and used again.

    A thread cannot be stopped: it goes on when its caller is cancelled, and is used again only when it has ended. None
    of them keeps the interpreter alive.
    """

    def __init__(self, most: int | None = None, *, idle_for: float = IDLE_FOR) -> None:
        """Run at most `most` calls at once, further ones wait; None sets no limit."""
        self._most = most
        self._idle_for = idle_for
        self._guard = threading.Lock()
        self._idle: list[Pair] = []
        self._line: deque[Work] = deque()
        self._count = 0
        self._named = 0
        self._closed = False
        self._ends: Ends | None = None

    @property
    def busy(self) -> int:
        """How many calls run, those whose caller has gone among them."""
        with self._guard:
            return self._count - len(self._idle)

    async def call(self, function: Callable[[], T]) -> T:
        """Return what `function` returns in a thread, in a copy of the caller's context; raises whatever it raises.

        A caller who is cancelled while the call waits for a thread has not begun it; one who is cancelled later leaves
        it running.
        """
        loop = asyncio.get_running_loop()
        if self._ends is None or not self._ends.belong_to(loop):
            self._ends = Ends(loop)
        work = Work(function, copy_context(), loop.create_future(), self._ends)
        self._begin(work)
        try:
            value, error = await work.ended
        except asyncio.CancelledError:
            self._forget(work)
            raise
        if error is None:
            result: T = value
            return result
        try:
            raise error
        finally:
            # its traceback has this frame
            del error

    def close(self) -> None:
        """End the threads that are idle, and the others when their calls have ended."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
            self._count -= len(idle)
        for thread, inbox in idle:
            inbox.put(None)
            thread.join(1)

    def _begin(self, work: Work) -> None:
        with self._guard:
            if self._idle:
                self._idle.pop().inbox.put(work)
            elif self._most is None or self._count < self._most:
                self._start(work)
            else:
                self._line.append(work)

    def _start(self, work: Work) -> None:
        inbox: SimpleQueue[Work | None] = SimpleQueue()
        inbox.put(work)
        name = f"windlass thread {self._named + 1}"
        threading.Thread(target=self._live, args=(inbox,), name=name, daemon=True).start()
        self._named += 1
        self._count += 1

    def _forget(self, work: Work) -> None:
        with self._guard, suppress(ValueError):
            self._line.remove(work)

    def _live(self, inbox: "SimpleQueue[Work | None]") -> None:
        me = Pair(threading.current_thread(), inbox)
        work = inbox.get()
        while work is not None:
            ended = _run(work)
            # free before the caller knows, so that its next call comes to this thread
            following, stays = self._free(me)
            work.ends.bring(work.ended, ended)
            # an idle thread holds on to nothing of its last call
            del work, ended
            work = following if following or not stays else self._wait(me)

    def _free(self, me: "Pair") -> "tuple[Work | None, bool]":
        """Return the next call in line, and whether the thread stays for more."""
        with self._guard:
            if self._line:
                return self._line.popleft(), True
            if self._closed:
                self._count -= 1
                return None, False
            self._idle.append(me)
            return None, True

    def _wait(self, me: "Pair") -> Work | None:
        try:
            return me.inbox.get(timeout=self._idle_for)
        except Empty:
            with self._guard:
                if me in self._idle:
                    self._idle.remove(me)
                    self._count -= 1
                    return None
            # taken in the last moment
            return me.inbox.get()


class Pair(NamedTuple):
    """A thread, and where it is given work."""

    thread: threading.Thread
    inbox: "SimpleQueue[Work | None]"


def _run(work: Work) -> Ended:
    try:
        return Ended(work.context.run(work.function))
    except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
        return Ended(None, error)
