"""A database of SlateDB, opened to write or to read: sorted keys and their values, by calls that have a deadline."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, Protocol, TypeVar

from slatedb.uniffi import (
    CloseReason,
    Db,
    DbIterator,
    DbReader,
    DurabilityLevel,
    FlushOptions,
    FlushType,
    IterationOrder,
    KeyRange,
    ScanOptions,
)

from windlass.core.errors import Fenced, StoreUnavailable
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.fast_bytes import batch_of, next_pairs, prepare
from windlass.stores.slatedb.faults import ENGINE_ERRORS, MAY_BE_DONE, translate
from windlass.stores.slatedb.settings import flushes_to_a_table
from windlass.stores.slatedb.view import View

logger = logging.getLogger("windlass")

T = TypeVar("T")

_MANY: Final = 1_000
_QUIET: Final = 30.0
"""Changes, and seconds since the last table, that are enough for the next one."""
_AHEAD: Final = 64 * 1024
_MOMENT: Final = 0.5
"""Seconds that the engine has to close in any case, also where those before it took all the time that there is."""
_WAL: Final = FlushOptions(flush_type=FlushType.WAL)
_MEMORY: Final = FlushOptions(flush_type=FlushType.MEM_TABLE)


def _scan_options(order: IterationOrder) -> ScanOptions:
    return ScanOptions(
        durability_filter=DurabilityLevel.MEMORY,
        dirty=False,
        # a block at a time would be a call to the bucket for each few keys
        read_ahead_bytes=_AHEAD,
        # the same lines are read again and again: without this, each time from the bucket
        cache_blocks=True,
        max_fetch_tasks=1,
        order=order,
    )


_UPWARDS: Final = prepare(_scan_options(IterationOrder.ASCENDING))
_DOWNWARDS: Final = prepare(_scan_options(IterationOrder.DESCENDING))


class _Source(Protocol):
    async def get(self, key: bytes) -> bytes | None: ...

    async def scan_with_options(self, range: KeyRange, options: ScanOptions) -> DbIterator: ...  # noqa: A002


class _End:
    """When all calls on a database and its views have ended, by the clock of the loop, once it is to be closed."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: float | None = None


class _Reading:
    """A view of what the engine has."""

    def __init__(self, source: _Source, address: Address, end: _End) -> None:
        self._source = source
        self._address = address
        self._end = end

    async def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None where it has none."""
        return await self._within(self._source.get(key))

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` keys from `start` to before `end`, with their values, in order or from the last on."""
        if start >= end or limit < 1:
            return []
        return await self._within(self._scan(start, end, limit, _DOWNWARDS if reverse else _UPWARDS))

    async def _scan(self, start: bytes, end: bytes, limit: int, options: ScanOptions) -> list[tuple[bytes, bytes]]:
        keys = KeyRange(start=start, start_inclusive=True, end=end, end_inclusive=False)
        return await next_pairs(await self._source.scan_with_options(keys, options), limit)

    async def _within(self, work: Awaitable[T]) -> T:
        return await within(work, self._address, until=self._end.at)


class _Gone:
    """Stands for a database that was closed."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreUnavailable(f"the database at {self._address.where} is closed: open it again", retryable=True)


class Database(_Reading):
    """A database that this process owns, for one event loop; reads see what was written and is not durable yet.

    Whoever opens it next owns it then. From that moment nothing that is written here becomes durable, and `Fenced` is
    raised: at the latest by `flush`.
    """

    def __init__(self, db: Db, address: Address) -> None:
        super().__init__(db, address, _End())
        self._db = db
        self._ended = False
        self._fenced = False
        self._unflushed = False
        self._flushes = 0
        self._changed = 0
        self._table: asyncio.Task[None] | None = None
        self._table_at = asyncio.get_running_loop().time()

    @property
    def fenced(self) -> bool:
        """Whether it is known that another process owns the database."""
        if not self._fenced and not self._ended:
            self._fenced = self._db.status().close_reason is CloseReason.FENCED
        return self._fenced

    @property
    def closed(self) -> bool:
        """Whether the engine has given the database up: nothing goes on until it is opened anew."""
        return self._ended or self._db.status().close_reason is not None

    @property
    def unflushed(self) -> bool:
        """Whether anything was written that no flush was called for since."""
        return self._unflushed

    async def snapshot(self) -> View:
        """Return a view of this moment that stays as it is."""
        return _Reading(await self._within(self._db.snapshot()), self._address, self._end)

    async def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put every key with a value and delete every key with None, as one step; reads see it when this returns.

        It is durable when a `flush` that was called afterwards has returned. One that failed may still be done.
        """
        if changes:
            self._changed += len(changes)
            try:
                await self._within(self._db.write(batch_of(changes)))
            finally:
                # behind it: a flush that is called meanwhile need not take it along
                self._unflushed = True

    async def flush(self) -> None:
        """Return when all that was written before is durable.

        With nothing to write it proves nothing: a former owner is told `Fenced` a second later only.
        """
        self._flushes += self._unflushed
        self._unflushed = False
        await self._within(self._db.flush_with_options(_WAL))
        if self._table is None and self._is_time_for_a_table():
            self._flushes = self._changed = 0
            self._table_at = asyncio.get_running_loop().time()
            self._table = asyncio.create_task(self._write_table(), name="slatedb table")

    def end_by(self, moment: float) -> None:
        """Let calls that begin from now on have ended by then, whatever is left of their own deadline."""
        self._end.at = moment

    async def close(self) -> None:
        """Let go of the database; what was durable stays so, whatever happens here."""
        if self._ended:
            return
        self._ended = True
        if self._table is not None:
            self._table.cancel()
        with suppress(*ENGINE_ERRORS):
            try:
                async with asyncio.timeout_at(self._closed_by()):
                    await self._db.shutdown()
            except TimeoutError:
                logger.warning("%s was not closed within %g s", self._address.where, self._address.timeout)
        # its connections end with the last that has it, and others may have this for a while
        gone: Any = _Gone(self._address)
        self._db = self._source = gone

    def _closed_by(self) -> float:
        now = asyncio.get_running_loop().time()
        late = now + self._address.timeout
        return late if self._end.at is None else min(late, max(self._end.at, now + _MOMENT))

    def _is_time_for_a_table(self) -> bool:
        if self._flushes >= flushes_to_a_table(self._address):
            return True
        # what was deleted is removed by merging tables: a queue that was emptied must not wait for the next rush
        return self._changed >= _MANY and asyncio.get_running_loop().time() >= self._table_at + _QUIET

    async def _write_table(self) -> None:
        """Write a table, so that whoever opens the database need not read all the flushes before it."""
        try:
            await self._db.flush_with_options(_MEMORY)
        except ENGINE_ERRORS as error:
            # it is tried again; whoever has to know, learns it from a call of their own
            logger.debug("no table was written to %s: %s", self._address.where, error)
        finally:
            self._table = None

    async def _within(self, work: Awaitable[T]) -> T:
        try:
            return await super()._within(work)
        except StoreUnavailable as error:
            self._fenced = self._fenced or isinstance(error, Fenced)
            raise


class Reader(_Reading):
    """A database that another process may own; it follows what becomes durable there, within a second or two."""

    def __init__(self, reader: DbReader, address: Address) -> None:
        super().__init__(reader, address, _End())
        self._reader = reader

    async def close(self) -> None:
        """Let go of the database."""
        with suppress(TimeoutError, *ENGINE_ERRORS):
            async with asyncio.timeout(self._address.timeout):
                await self._reader.shutdown()


async def within(work: Awaitable[T], address: Address, became: str = MAY_BE_DONE, *, until: float | None = None) -> T:
    """Do what the engine is asked for by the deadline, or raise what users are told: the engine itself never gives up.

    Past the deadline it may still be done, unless it is told that something else `became` of it. The deadline is no
    later than `until`.
    """
    late = asyncio.get_running_loop().time() + address.timeout
    try:
        async with asyncio.timeout_at(late if until is None else min(late, until)):
            return await work
    except (TimeoutError, *ENGINE_ERRORS) as error:
        raise translate(error, address, became) from error
