"""A database of SlateDB, opened to write or to read: sorted keys and their values, by calls that have a deadline."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NoReturn, Protocol, TypeVar, cast

from slatedb.uniffi import (
    CloseReason,
    Db,
    DbBuilder,
    DbIterator,
    DbReader,
    DbReaderBuilder,
    DurabilityLevel,
    FlushOptions,
    FlushType,
    IterationOrder,
    KeyRange,
    ReaderMode,
    ReaderOptions,
    ScanOptions,
)

from windlass.core.errors import Fenced, SchemaMissing, StoreCorrupt, StoreUnavailable
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.fast_bytes import batch_of, next_pairs, prepare
from windlass.stores.slatedb.fast_calls import speed_up
from windlass.stores.slatedb.faults import ENGINE_ERRORS, forked, translate
from windlass.stores.slatedb.objects import objects_of
from windlass.stores.slatedb.settings import cache, flushes_to_a_table, reader_options, settings_of

logger = logging.getLogger("windlass")

T = TypeVar("T")

_processes: Final[set[int]] = set()
_OWN_CACHE: Final = 1
_LOOKS: Final = 3
_PATIENCE: Final = 5.0
_MANY: Final = 1_000
_QUIET: Final = 30.0
"""Changes, and seconds since the last table, that are enough for the next one."""
_AHEAD: Final = 64 * 1024
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


class View(Protocol):
    """What can be read."""

    async def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None where it has none."""
        ...

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` keys from `start` to before `end`, with their values, in order or from the last on."""
        ...


class _Source(Protocol):
    async def get(self, key: bytes) -> bytes | None: ...

    async def scan_with_options(self, range: KeyRange, options: ScanOptions) -> DbIterator: ...  # noqa: A002


class _Reading:
    """A view of what the engine has."""

    def __init__(self, source: _Source, address: Address) -> None:
        self._source = source
        self._address = address

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
        return await within(work, self._address)


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
        super().__init__(db, address)
        self._db = db
        self._ended = False
        self._fenced = False
        self._written = False
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

    async def snapshot(self) -> View:
        """Return a view of this moment that stays as it is."""
        return _Reading(await self._within(self._db.snapshot()), self._address)

    async def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put every key with a value and delete every key with None, as one step; reads see it when this returns.

        It is durable when a `flush` that was called afterwards has returned. One that failed may still be done.
        """
        if changes:
            self._written = True
            self._changed += len(changes)
            await self._within(self._db.write(batch_of(changes)))

    async def flush(self) -> None:
        """Return when all that was written before is durable.

        With nothing to write it proves nothing: a former owner is told `Fenced` a second later only.
        """
        self._flushes += self._written
        self._written = False
        await self._within(self._db.flush_with_options(_WAL))
        if self._table is None and self._is_time_for_a_table():
            self._flushes = self._changed = 0
            self._table_at = asyncio.get_running_loop().time()
            self._table = asyncio.create_task(self._write_table(), name="slatedb table")

    async def close(self) -> None:
        """Let go of the database; what was durable stays so, whatever happens here."""
        if self._ended:
            return
        self._ended = True
        if self._table is not None:
            self._table.cancel()
        with suppress(*ENGINE_ERRORS):
            try:
                async with asyncio.timeout(self._address.timeout):
                    await self._db.shutdown()
            except TimeoutError:
                logger.warning("%s was not closed within %g s", self._address.where, self._address.timeout)
        # its connections end with the last that has it, and others may have this for a while
        gone: Any = _Gone(self._address)
        self._db = self._source = gone

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
            return await within(work, self._address)
        except StoreUnavailable as error:
            self._fenced = self._fenced or isinstance(error, Fenced)
            raise


class Reader(_Reading):
    """A database that another process may own; it follows what becomes durable there, within a second or two."""

    def __init__(self, reader: DbReader, address: Address) -> None:
        super().__init__(reader, address)
        self._reader = reader

    async def close(self) -> None:
        """Let go of the database."""
        with suppress(TimeoutError, *ENGINE_ERRORS):
            async with asyncio.timeout(self._address.timeout):
                await self._reader.shutdown()


async def open_database(address: Address) -> Database:
    """Own the database at `address` from now on; whoever owned it is fenced. It is made where that is allowed."""
    _begin(address)
    if not address.create:
        await _check_there(address)
    return Database(await within(_build(address), address), address)


async def open_reader(address: Address) -> Reader:
    """Read the database at `address`, which is there; its owner goes on, and nothing is written."""
    _begin(address)
    await _check_there(address)
    return Reader(await within(_build_reader(address, reader_options(address)), address), address)


async def look_up(address: Address, key: bytes) -> bytes | None:
    """Return what a key has in a database that is opened for this alone; None as well where there is no database.

    Nothing is written, and what keeps this process from the bucket is told at once where the bucket says it.
    """
    _begin(address)
    there = replace(address, create=False)
    try:
        return await _asked_twice(lambda patient: _look_up(there, key, patient=patient), there)
    except SchemaMissing:
        return None


async def within(work: Awaitable[T], address: Address) -> T:
    """Do what the engine is asked for by the deadline, or raise what users are told: the engine itself never gives up.

    Past the deadline it may still be done.
    """
    try:
        async with asyncio.timeout(address.timeout):
            return await work
    except (TimeoutError, *ENGINE_ERRORS) as error:
        raise translate(error, address) from error


def _begin(address: Address) -> None:
    """Begin with the engine in this process; its threads are not there in one that is forked afterwards."""
    speed_up()
    _processes.add(os.getpid())
    if len(_processes) > 1:
        raise forked(address)


async def _build(address: Address) -> Db:
    builder = DbBuilder(address.prefix, objects_of(address))
    builder.with_settings(settings_of(address))
    builder.with_db_cache(cache(), _OWN_CACHE)
    return await builder.build()


async def _build_reader(address: Address, options: ReaderOptions) -> DbReader:
    builder = DbReaderBuilder(address.prefix, objects_of(address))
    # the other modes write a checkpoint; the types do not know that each mode is one
    builder.with_reader_mode(cast("ReaderMode", ReaderMode.FOLLOW_LATEST()))
    builder.with_options(options)
    builder.with_db_cache(cache(), _OWN_CACHE)
    return await builder.build()


async def _check_there(address: Address) -> None:
    """Raise `SchemaMissing` where there is no database, and what the bucket says where it says no."""
    there = replace(address, create=False)

    def build(patient: bool) -> Awaitable[DbReader]:  # noqa: FBT001 - the one thing that differs
        return _build_reader(there, reader_options(there, once=True, patient=patient, skip_wal=True))

    await Reader(await _asked_twice(build, there), there).close()


async def _asked_twice(ask: Callable[[bool], Awaitable[T]], address: Address) -> T:
    """Ask so that a bucket which says no is heard at once; after a fault that may pass, with patience."""
    began = time.monotonic()
    try:
        return await within(ask(False), address)  # noqa: FBT003 - as above
    except StoreUnavailable as error:
        left = min(_PATIENCE, address.timeout - (time.monotonic() - began))
        if not error.retryable or left <= 0:
            raise
        fault = error
    try:
        async with asyncio.timeout(left):
            return await ask(True)  # noqa: FBT003 - as above
    except TimeoutError:
        raise fault from fault.__cause__
    except ENGINE_ERRORS as error:
        raise translate(error, address) from error


async def _look_up(address: Address, key: bytes, *, patient: bool) -> bytes | None:
    for left in reversed(range(_LOOKS)):
        try:
            reader = await _build_reader(address, reader_options(address, once=True, patient=patient))
            try:
                return await reader.get(key)
            finally:
                await reader.shutdown()
        except ENGINE_ERRORS as error:
            # its owner may have removed, meanwhile, what it has merged into another table
            if not (left and isinstance(translate(error, address), StoreCorrupt)):
                raise
    raise AssertionError
