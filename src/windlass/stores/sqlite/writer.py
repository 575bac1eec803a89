"""Group commit: what callers bring while one commit is on its way goes into the next.

There is no timer, so a lone call is not delayed, and under load hundreds of calls share one sync of the disk. Commits
are made by a thread. Only a call that comes alone, while nobody writes and the disk answers within half a millisecond,
is committed on the event loop itself: two changes of thread would take as long as the commit.
"""

import asyncio
import logging
import queue
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from windlass.core.errors import ClientClosed, StoreUnavailable, WindlassError
from windlass.core.store_calls import Command
from windlass.core.topics import Hub
from windlass.stores.sqlite.committer import CommittedBatch, Committer, PendingCommand, PendingCommands
from windlass.stores.sqlite.moves.receipts import SqliteRequest
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, WARN_AFTER

logger = logging.getLogger("windlass.sqlite")

R = TypeVar("R")

QUICK: Final = 0.0005
"""Seconds: a commit that takes no longer may be made on the event loop."""


class Writer:
    """Takes writes from one event loop and has them committed."""

    def __init__(self, path: Path, committer: Committer, hub: Hub) -> None:
        """Commit through `committer`, which belongs to this writer from now on."""
        self._path = path
        self._committer = committer
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._waiting: PendingCommands = deque()
        # whoever has it commits: the thread, or the loop while the thread has nothing to do
        self._committing = threading.Lock()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._idle = True
        self._stopping = False
        self._checkpoint_due = False
        self._watch: asyncio.TimerHandle | None = None
        self._warned = False
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="windlass-sqlite-writer", daemon=True)
        self._thread.start()

    def submit(self, command: Command[R], request_id: str | None = None) -> "asyncio.Future[R]":
        """Hand over a command; the future is done when it is committed."""
        future: asyncio.Future[R] = self._loop.create_future()
        if self._stopping:
            future.set_exception(ClientClosed())
            return future
        self._waiting.append(PendingCommand(SqliteRequest(command, request_id), future, self._loop.time()))
        if self._idle:
            self._idle = False
            # after what is ready to run on the loop now: calls that are made together are committed together
            self._loop.call_soon(self._start)
        if self._watch is None:
            self._watch = self._loop.call_later(WARN_AFTER, self._look_at_waits)
        return future

    async def close(self) -> None:
        """Finish what was handed over, then let go of the file."""
        self._stopping = True
        self._bell.put(None)
        await self._ended.wait()
        self._thread.join()
        if self._watch is not None:
            self._watch.cancel()

    # on the event loop

    def _start(self) -> None:
        if not self._commit_here():
            self._bell.put(None)

    def _commit_here(self) -> bool:
        """Commit a call that came alone, if that is quick and nobody is in the way."""
        if len(self._waiting) != 1 or self._stopping or self._committer.pace > QUICK:
            return False
        if not self._committing.acquire(blocking=False):
            return False
        try:
            done = self._committer.serve_at_once(self._waiting)
            if done is None:
                return False
            self._checkpoint_due = self._committer.checkpoint_is_due()
        finally:
            self._committing.release()
        self._deliver(done)
        self._idle = True
        return not self._checkpoint_due

    def _look_at_waits(self) -> None:
        """Say who is in the way of a write that waits long, and let no caller wait for ever."""
        self._watch = None
        now = self._loop.time()
        for call in list(self._waiting):
            waited = now - call.since
            if waited >= GIVE_UP_AFTER:
                self._give_up(call, waited)
            elif waited >= WARN_AFTER and not self._warned:
                self._warned = True
                logger.warning("a write to %s waits since %.0f s: %s", self._path, waited, self._likely_cause())
        if self._waiting:
            self._watch = self._loop.call_later(1.0, self._look_at_waits)
        else:
            self._warned = False

    def _give_up(self, call: PendingCommand, waited: float) -> None:
        try:
            self._waiting.remove(call)
        except ValueError:
            return  # its commit has begun
        if not call.future.done():
            message = f"a write to {self._path} waited {waited:.0f} s and was given up: {self._likely_cause()}"
            call.future.set_exception(StoreUnavailable(message, retryable=True))

    def _likely_cause(self) -> str:
        return (
            "some connection holds SQLite's write lock; most likely a transaction of your own that was left open (pass "
            "connection= to write inside it, and commit it soon), or process "
            f"{self._committer.holder()}, if it is stopped"
        )

    def _deliver(self, done: CommittedBatch) -> None:
        for call, result in zip(done.commands, done.results, strict=True):
            if call.future.done():
                continue
            if isinstance(result, WindlassError):
                call.future.set_exception(result)
            else:
                call.future.set_result(result)
        if done.topics:
            self._hub.ring(done.topics)

    # on the writing thread

    def _work(self) -> None:
        while self._wait_for_work():
            with self._committing:
                self._commit()
        with self._committing:
            self._committer.close()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended.set)

    def _wait_for_work(self) -> bool:
        while not self._waiting and not self._checkpoint_due:
            if self._stopping:
                return False
            self._idle = True
            # a call that came before the flag was seen rang no bell
            if self._waiting:
                break
            self._bell.get()
        self._idle = False
        return True

    def _commit(self) -> None:
        done = self._committer.serve(self._waiting) if self._waiting else None
        if done is not None:
            self._hand_back(done)
        if self._checkpoint_due or (done is not None and self._committer.checkpoint_is_due()):
            self._checkpoint_due = False
            self._committer.checkpoint()

    def _hand_back(self, done: CommittedBatch) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, done)
        except RuntimeError:
            self._stopping = True  # the loop is closed: nobody waits any more
