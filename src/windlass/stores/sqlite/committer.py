"""One turn: what has gathered is committed together. Used by one thread at a time."""

import asyncio
import logging
import math
import sqlite3
import time
from collections import deque
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from windlass.core.clock import Clock
from windlass.core.failpoint import reach
from windlass.core.topics import Topic
from windlass.stores.sqlite import commands
from windlass.stores.sqlite.checkpoint import Checkpointer
from windlass.stores.sqlite.damaged import may_be_damage, with_any_text
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.moves.receipts import SqliteRequest
from windlass.stores.sqlite.transaction import Transaction
from windlass.stores.sqlite.turns import FileIdentity, Turns
from windlass.stores.sqlite.wake import WakeFile

logger = logging.getLogger("windlass.sqlite")

MAX_COMMANDS: Final = 2_000
CHECKPOINT_DUE_AFTER = 5_000
"""In changed rows and, for each commit, ten more: about 8 MiB of log, which is then written over in place."""
_PER_COMMIT: Final = 10
_TRY_EVERY: Final = 0.005
_SMALL: Final = 4
_MEMORY: Final = 0.8
_BY_RANK: Final = attrgetter("rank")


class PendingCommand:
    """A command of one caller that waits for its commit since `since`, by the loop's clock."""

    __slots__ = ("future", "rank", "request", "since")

    def __init__(self, request: SqliteRequest[Any], future: "asyncio.Future[Any]", since: float) -> None:
        self.request = request
        self.rank = commands.RANK[type(request.command)]
        self.future = future
        self.since = since


PendingCommands: TypeAlias = deque[PendingCommand]
"""Commands that no commit has taken yet; one thread adds at the end, any may take from the front."""


class CommittedBatch(NamedTuple):
    """Commands that were committed together, the result of each, and the topics that they changed."""

    commands: list[PendingCommand]
    results: list[Any]
    topics: set[Topic]


def take_commands(waiting: PendingCommands) -> list[PendingCommand]:
    """Take what has gathered, in the order of a commit, without what was cancelled."""
    taken: list[PendingCommand] = []
    while waiting and len(taken) < MAX_COMMANDS:
        command = waiting.popleft()
        if not command.future.cancelled():
            taken.append(command)
    taken.sort(key=_BY_RANK)
    return taken


class Committer:
    """Commits the calls of one process; `pace` is how many seconds a small commit has taken of late."""

    def __init__(
        self,
        path: Path,
        *,
        connection: sqlite3.Connection,
        turns: Turns,
        checkpointer: Checkpointer,
        wake: WakeFile,
        clock: Clock,
    ) -> None:
        """Write through `connection`, which belongs to this committer from now on."""
        self._path = path
        self._connection = connection
        self._turns = turns
        self._checkpointer = checkpointer
        self._wake = wake
        self._clock = clock
        self._file = FileIdentity(path)
        self.pace = math.inf
        self._log_weight = 0
        self._changes = 0
        # waiting for a writer outside of Windlass is done here, where it can be given up
        connection.execute("pragma busy_timeout = 0")

    def serve(self, waiting: PendingCommands) -> CommittedBatch | None:
        """Wait for the turn, commit what has gathered by then, and give the turn back.

        None when all who waited have given up meanwhile.
        """
        self._turns.take()
        return self._in_turn(waiting, patient=True)

    def serve_at_once(self, waiting: PendingCommands) -> CommittedBatch | None:
        """Commit what has gathered if nobody is in the way; None, and nothing is done, when somebody is."""
        if not self._turns.take_now():
            return None
        return self._in_turn(waiting, patient=False)

    def checkpoint_is_due(self) -> bool:
        """Count a commit; whether the log should be moved into the database now."""
        changes = self._connection.total_changes
        self._log_weight += changes - self._changes + _PER_COMMIT
        self._changes = changes
        return self._log_weight >= CHECKPOINT_DUE_AFTER

    def checkpoint(self) -> None:
        """Move the log into the database."""
        self._turns.take()
        try:
            # no connection can commit while this one holds the write lock
            self._connection.execute("begin immediate")
            self._log_weight = 0
            try:
                self._checkpointer.run()
            finally:
                self._connection.execute("rollback")
        except sqlite3.Error as error:
            # the log only grows meanwhile; a later commit tries again
            logger.info("the log of %s could not be checkpointed now: %s", self._path, error)
        finally:
            self._turns.give()

    def holder(self) -> str:
        """Return the process id of whoever had the turn last."""
        return self._turns.holder()

    def close(self) -> None:
        """Close the connection; the last one out moves the log into the database."""
        self._turns.take()
        try:
            self._checkpointer.close()
            self._connection.close()
        finally:
            self._turns.give()
            self._turns.close()

    def _in_turn(self, waiting: PendingCommands, *, patient: bool) -> CommittedBatch | None:
        calls: list[PendingCommand] = []
        try:
            self._file.check()
            if not self._begin(waiting, patient=patient):
                return None
            calls = take_commands(waiting)
            results, topics = self._commit_in_time(calls)
            self._spread(topics)
        except Exception as error:  # noqa: BLE001 - every caller is told
            calls = calls or take_commands(waiting)
            results, topics = [translate(error, self._path)] * len(calls), set[Topic]()
        finally:
            # before the callers are told: they would run in our interpreter while everybody waits for the turn
            self._turns.give()
        return CommittedBatch(calls, results, topics)

    def _begin(self, waiting: PendingCommands, *, patient: bool) -> bool:
        """Take SQLite's write lock; a writer outside of Windlass may hold it for long."""
        while True:
            try:
                self._connection.execute("begin immediate")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not patient or not waiting:
                    return False
                time.sleep(_TRY_EVERY)
            else:
                return True

    def _commit_in_time(self, calls: list[PendingCommand]) -> tuple[list[Any], set[Topic]]:
        began = time.perf_counter()
        done = self._commit(calls)
        if 0 < len(calls) <= _SMALL:
            took = time.perf_counter() - began
            self.pace = took if math.isinf(self.pace) else _MEMORY * self.pace + (1 - _MEMORY) * took
        return done

    def _commit(self, calls: list[PendingCommand]) -> tuple[list[Any], set[Topic]]:
        """Commit all calls together; if that fails, each alone, so that one caller's error is its own."""
        try:
            return self._commit_together(calls)
        except Exception as error:
            self._roll_back()
            if len(calls) == 1:
                return (
                    self._commit_carefully(calls) if may_be_damage(error) else ([translate(error, self._path)], set())
                )
            logger.debug("a shared commit failed; its calls are tried one by one", exc_info=True)
        results: list[Any] = []
        topics: set[Topic] = set()
        for call in calls:
            self._connection.execute("begin immediate")
            [result], news = self._commit([call])
            results.append(result)
            topics |= news
        return results, topics

    def _commit_carefully(self, calls: list[PendingCommand]) -> tuple[list[Any], set[Topic]]:
        """Commit a call that has met a damaged record."""
        self._connection.execute("begin immediate")
        try:
            with with_any_text(self._connection):
                return self._commit_together(calls, careful=True)
        except Exception as error:  # noqa: BLE001 - the caller is told
            self._roll_back()
            return [translate(error, self._path)], set()

    def _commit_together(self, calls: list[PendingCommand], *, careful: bool = False) -> tuple[list[Any], set[Topic]]:
        tx = Transaction(self._connection, self._clock.now(), careful=careful)
        try:
            results = commands.execute(tx, [call.request for call in calls])
            tx.flush()
        finally:
            tx.close()
        reach("sqlite.before_commit")
        self._connection.execute("commit")
        reach("sqlite.after_commit")
        return results, tx.topics

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("rollback")

    def _spread(self, topics: set[Topic]) -> None:
        try:
            self._wake.bump(topics)
        except OSError as error:
            # the calls are committed: others hear of them at their next look
            logger.warning("no news of a commit to %s could be written: %s", self._path, error)
