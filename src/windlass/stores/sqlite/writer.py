"""The one thread of a process that writes, and its group commit.

What callers bring while one commit is on its way goes into the next: no timer, so a lone call is not delayed, and
under load hundreds of calls share one sync of the disk.
"""

import asyncio
import logging
import os
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import ClientClosed, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.core.topics import Hub, Topic
from windlass.stores.sqlite.checkpoint import Checkpointer
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.transaction import Transaction
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, WARN_AFTER, Turns
from windlass.stores.sqlite.wake import WakeFile

logger = logging.getLogger("windlass.sqlite")

A = TypeVar("A")
R = TypeVar("R")

MOST_CALLS: Final = 2_000


class Move(Generic[A, R]):
    """A kind of write: takes the calls of many callers at once and answers each, with a value or an error."""

    __slots__ = ("rank", "run")

    def __init__(self, rank: int, run: Callable[[Transaction, list[A]], Sequence[R | WindlassError]]) -> None:
        """Run in the order of `rank` among the calls of one commit."""
        self.rank = rank
        self.run = run


class Call:
    """One caller's write, waiting for its commit."""

    __slots__ = ("argument", "future", "move", "since")

    def __init__(self, move: Move[Any, Any], argument: object, future: "asyncio.Future[Any]", since: float) -> None:
        """Wait since `since`, by the loop's clock."""
        self.move = move
        self.argument = argument
        self.future = future
        self.since = since

    @property
    def rank(self) -> int:
        """The place of its kind in a commit."""
        return self.move.rank


class Writer:
    """Takes writes from one event loop and commits them from a thread of its own."""

    def __init__(
        self,
        path: Path,
        *,
        connection: sqlite3.Connection,
        turns: Turns,
        checkpointer: Checkpointer,
        wake: WakeFile,
        hub: Hub,
        clock: Clock,
    ) -> None:
        """Write through `connection`, which belongs to this writer from now on."""
        self._path = path
        self._connection = connection
        self._turns = turns
        self._checkpointer = checkpointer
        self._wake = wake
        self._hub = hub
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._inode = path.stat().st_ino
        self._waiting: deque[Call] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._idle = True
        self._stopping = False
        self._watch: asyncio.TimerHandle | None = None
        self._warned = False
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="windlass-sqlite-writer", daemon=True)
        self._thread.start()

    def submit(self, move: Move[A, R], argument: A) -> "asyncio.Future[R]":
        """Hand over a write; the future is done when it is committed."""
        future: asyncio.Future[R] = self._loop.create_future()
        if self._stopping:
            future.set_exception(ClientClosed())
            return future
        self._waiting.append(Call(move, argument, future, self._loop.time()))
        if self._idle:
            self._idle = False
            # after what is ready to run on the loop now: calls that are made together are committed together
            self._loop.call_soon(self._bell.put, None)
        if self._watch is None:
            self._watch = self._loop.call_later(WARN_AFTER, self._look_at_waits)
        return future

    async def close(self) -> None:
        """Finish what was handed over, then close the connection; the last one out moves the log into the database."""
        self._stopping = True
        self._bell.put(None)
        await self._ended.wait()
        self._thread.join()
        if self._watch is not None:
            self._watch.cancel()

    # on the event loop

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

    def _give_up(self, call: Call, waited: float) -> None:
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
            f"connection= to write inside it, and commit it soon), or process {self._turns.holder()}, if it is stopped"
        )

    def _deliver(self, calls: list[Call], results: list[Any], topics: set[Topic]) -> None:
        for call, result in zip(calls, results, strict=True):
            if call.future.done():
                continue
            if isinstance(result, WindlassError):
                call.future.set_exception(result)
            else:
                call.future.set_result(result)
        if topics:
            self._hub.ring(topics)

    # on the writing thread

    def _work(self) -> None:
        while self._wait_for_work():
            self._turn()
        self._close()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended.set)

    def _wait_for_work(self) -> bool:
        while not self._waiting:
            if self._stopping:
                return False
            self._idle = True
            # a call that came before the flag was seen rang no bell
            if self._waiting:
                break
            self._bell.get()
        self._idle = False
        return True

    def _turn(self) -> None:
        """Take the turn, commit what has gathered by then, and give the turn back."""
        calls: list[Call] = []
        self._turns.take()
        try:
            self._check_file()
            if not self._begin():
                return
            calls = self._take_calls()
            results, topics = self._commit(calls)
            self._spread(topics)
        except Exception as error:  # noqa: BLE001 - every caller is told, and the thread lives on
            calls = calls or self._take_calls()
            results, topics = [translate(error, self._path)] * len(calls), set[Topic]()
        finally:
            # before the callers are told: they would run in our interpreter while everybody waits for the turn
            self._turns.give()
        self._hand_back(calls, results, topics)
        if self._checkpointer.due(self._connection.total_changes):
            self._checkpoint()

    def _spread(self, topics: set[Topic]) -> None:
        try:
            self._wake.bump(topics)
        except OSError as error:
            # the calls are committed: others hear of them at their next look
            logger.warning("no news of a commit to %s could be written: %s", self._path, error)

    def _hand_back(self, calls: list[Call], results: list[Any], topics: set[Topic]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, calls, results, topics)
        except RuntimeError:
            self._stopping = True  # the loop is closed: nobody waits any more

    def _check_file(self) -> None:
        """Refuse to write to a file that is no longer the one at this path: nobody would ever find it."""
        try:
            inode = os.stat(self._path).st_ino  # noqa: PTH116 - a look by name: the file must not be opened
        except FileNotFoundError:
            inode = None
        if inode != self._inode:
            message = (
                f"{self._path} was deleted or replaced while it was open: stop, put the file back, and connect again"
            )
            raise StoreUnavailable(message)

    def _begin(self) -> bool:
        """Take SQLite's write lock; a writer outside of Windlass may hold it for long."""
        while True:
            try:
                self._connection.execute("begin immediate")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not self._waiting:
                    return False
            else:
                return True

    def _take_calls(self) -> list[Call]:
        calls: list[Call] = []
        while self._waiting and len(calls) < MOST_CALLS:
            call = self._waiting.popleft()
            if not call.future.cancelled():
                calls.append(call)
        calls.sort(key=attrgetter("rank"))
        return calls

    def _commit(self, calls: list[Call]) -> tuple[list[Any], set[Topic]]:
        """Commit all calls together; if that fails, each alone, so that one caller's error is its own."""
        try:
            return self._commit_together(calls)
        except Exception as error:
            self._roll_back()
            if len(calls) == 1:
                return [translate(error, self._path)], set()
            logger.debug("a shared commit failed; its calls are tried one by one", exc_info=True)
        results: list[Any] = []
        topics: set[Topic] = set()
        for call in calls:
            self._connection.execute("begin immediate")
            [result], news = self._commit([call])
            results.append(result)
            topics |= news
        return results, topics

    def _commit_together(self, calls: list[Call]) -> tuple[list[Any], set[Topic]]:
        results: list[Any] = []
        with closing(Transaction(self._connection, self._clock.now())) as tx:
            for move, group in groupby(calls, key=attrgetter("move")):
                results += move.run(tx, [call.argument for call in group])
            tx.flush()
        reach("sqlite.before_commit")
        self._connection.execute("commit")
        reach("sqlite.after_commit")
        return results, tx.topics

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("rollback")

    def _checkpoint(self) -> None:
        self._turns.take()
        try:
            self._checkpointer.run(self._connection)
        except sqlite3.Error as error:
            # the log only grows meanwhile; a later commit tries again
            logger.info("the log of %s could not be checkpointed now: %s", self._path, error)
        finally:
            self._turns.give()

    def _close(self) -> None:
        self._turns.take()
        try:
            self._checkpointer.close()
            self._connection.close()
        finally:
            self._turns.give()
            self._turns.close()
