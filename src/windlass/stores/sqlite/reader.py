"""The thread of a process that only looks: it never waits for a writer."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from windlass.core.errors import ClientClosed
from windlass.stores.sqlite.damaged import may_be_damage, with_any_text
from windlass.stores.sqlite.faults import translate

T = TypeVar("T")


class Snapshot(NamedTuple):
    """Cursor of a read transaction, and the time of the query."""

    cursor: sqlite3.Cursor
    now: datetime


class Reader:
    """Runs looks one after the other, each in a read transaction of its own: every answer is of one moment."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Look through `connection`, which belongs to this reader from now on."""
        self._path = path
        self._connection = connection
        self._connection.execute("pragma query_only = on")
        self._loop = asyncio.get_running_loop()
        self._looks: queue.SimpleQueue[tuple[Callable[[sqlite3.Cursor], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._closed = False
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="windlass-sqlite-reader", daemon=True)
        self._thread.start()

    def look(self, look: Callable[[sqlite3.Cursor], T]) -> "asyncio.Future[T]":
        """Call `look` with a cursor; the future is its answer."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(ClientClosed())
        else:
            self._looks.put((look, future))
        return future

    async def close(self) -> None:
        """Finish what was asked, then close the connection."""
        self._closed = True
        self._looks.put(None)
        await self._ended.wait()
        self._thread.join()

    def _work(self) -> None:
        while (task := self._looks.get()) is not None:
            look, future = task
            if future.cancelled():
                continue
            answer, error = self._look(look)
            try:
                self._loop.call_soon_threadsafe(_deliver, future, answer, error)
            except RuntimeError:
                break  # the loop is closed: nobody waits any more
        self._connection.close()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended.set)

    def _look(self, look: Callable[[sqlite3.Cursor], Any]) -> tuple[Any, Exception | None]:
        try:
            try:
                return self._look_once(look), None
            except Exception as error:
                if not may_be_damage(error):
                    raise
            with with_any_text(self._connection):
                return self._look_once(look), None
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and the thread lives on
            return None, translate(error, self._path)

    def _look_once(self, look: Callable[[sqlite3.Cursor], T]) -> T:
        cursor = self._connection.execute("begin")
        try:
            return look(cursor)
        finally:
            self._connection.execute("rollback")


def _deliver(future: "asyncio.Future[Any]", answer: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)
