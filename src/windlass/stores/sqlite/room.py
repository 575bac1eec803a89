"""All that a process has open of one file."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import WindlassError
from windlass.core.topics import FLAGS, PAUSES, SCHEDULES, Hub
from windlass.stores.sqlite.alive import AliveFiles
from windlass.stores.sqlite.checkpoint import Checkpointer
from windlass.stores.sqlite.committer import Committer
from windlass.stores.sqlite.database import Options, check_place, connect, open_database
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.lender import Lender
from windlass.stores.sqlite.packer import Packer
from windlass.stores.sqlite.queries import data_version
from windlass.stores.sqlite.reader import Reader
from windlass.stores.sqlite.turns import Turns
from windlass.stores.sqlite.wake import WakeFile
from windlass.stores.sqlite.writer import Writer

T = TypeVar("T")

LOOK_EVERY: Final = 0.05
"""How soon a commit that wrote no news is seen: one through a caller's own connection."""
_abandoned: list["Room"] = []


class Room:
    """Connections, threads and files of one process; belongs to the event loop that opened it."""

    def __init__(
        self,
        path: Path,
        options: Options,
        writer: Writer,
        reader: Reader,
        lender: Lender,
        *,
        clock: Clock,
        wake: WakeFile,
        hub: Hub,
    ) -> None:
        """Begin to work; news is watched only once somebody listens."""
        self.pid = os.getpid()
        self.path = path
        self.options = options
        self.clock = clock
        self.writer = writer
        self.reader = reader
        self.lender = lender
        self.alive = AliveFiles(path)
        self.packer = Packer()
        self.wake = wake
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._watching = False
        self._news: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._version: int | None = None
        self._task: asyncio.Task[None] | None = None

    def watch_news(self) -> None:
        """Let commits of other processes ring; called when somebody listens."""
        if not self._watching:
            self._watching = True
            self._news = self.wake.watch()
            if self._news is not None:
                self._loop.add_reader(self._news, self.wake.look)
        if self._timer is None and self._task is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    async def close(self) -> None:
        """Finish what was handed over and let go of everything."""
        if self._timer is not None:
            self._timer.cancel()
        if self._news is not None:
            self._loop.remove_reader(self._news)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        # the writer last: its close, under the turn, is then the last and moves the log into the database
        await self.lender.close()
        await self.reader.close()
        await self.writer.close()
        self.alive.close()
        self.wake.close()

    def abandon(self) -> None:
        """Leave everything as it is, in a forked child: closing would touch what is still the parent's."""
        _abandoned.append(self)

    def _look(self) -> None:
        self._timer = None
        if self._hub.silent:
            return
        if self._news is None:
            self.wake.look()
        self._task = self._loop.create_task(self._look_at_version(), name="windlass look at version")

    async def _look_at_version(self) -> None:
        version = self._version
        with contextlib.suppress(WindlassError):
            version = await self.reader.look(data_version)
        # the first look rings as well: what was committed between a listener's own look and this one is not known
        if version != self._version:
            # these are news of our own moves, which write them: a caller's transaction only enqueues and settles
            self._hub.ring_all(but=(FLAGS, PAUSES, SCHEDULES))
        self._version = version
        self._task = None
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)


class Opened(NamedTuple):
    """What was opened of a file, before anybody works with it."""

    turns: Turns
    writing: sqlite3.Connection
    checkpoints: sqlite3.Connection
    looking: sqlite3.Connection
    wake: WakeFile

    def close(self) -> None:
        """Let go of everything."""
        for part in (self.wake, self.looking, self.checkpoints, self.writing, self.turns):
            part.close()


async def open_room(path: Path, options: Options, clock: Clock, hub: Hub) -> Room:
    """Open the file and start its threads."""
    opened = await in_a_thread(lambda: _open(path, options, hub), leave=Opened.close)
    committer = Committer(
        path,
        connection=opened.writing,
        turns=opened.turns,
        checkpointer=Checkpointer(opened.checkpoints, path, clock),
        wake=opened.wake,
        clock=clock,
    )
    lender = Lender(path, options, opened.wake, hub)
    writer, reader = Writer(path, committer, hub), Reader(path, opened.looking)
    return Room(path, options, writer, reader, lender, clock=clock, wake=opened.wake, hub=hub)


async def in_a_thread(work: Callable[[], T], *, leave: Callable[[T], None] = lambda _: None) -> T:
    """Return what `work` returns in a thread of its own; one that the caller no longer waits for goes to `leave`.

    The thread ends with the work: asyncio's own would still be there when the interpreter wants to end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: T) -> None:
        if done.done():
            leave(result)
        else:
            done.set_result(result)

    def fail(error: Exception) -> None:
        if not done.done():
            done.set_exception(error)

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised where the work is awaited
            with contextlib.suppress(RuntimeError):  # the loop is closed, and with it the waiting caller
                loop.call_soon_threadsafe(fail, error)
            return
        try:
            loop.call_soon_threadsafe(deliver, result)
        except RuntimeError:  # as above
            leave(result)

    threading.Thread(target=run, name="windlass-sqlite-opener", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        # it was there already, and nobody will take it
        if done.done() and not done.cancelled() and done.exception() is None:
            leave(done.result())
        raise


def _open(path: Path, options: Options, hub: Hub) -> Opened:
    try:
        check_place(path, options)
        with contextlib.ExitStack() as parts:
            turns = Turns(path)
            parts.callback(turns.close)
            writing = parts.enter_context(contextlib.closing(open_database(path, options, turns)))
            checkpoints = parts.enter_context(contextlib.closing(connect(path, options)))
            looking = parts.enter_context(contextlib.closing(connect(path, options)))
            wake = WakeFile(path, hub)
            parts.pop_all()
            return Opened(turns, writing, checkpoints, looking, wake)
    except WindlassError:
        raise
    except Exception as error:
        raise translate(error, path) from error
