"""How a database is opened: to own it, to read it, or for one look at it."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

from slatedb.uniffi import Db, DbBuilder, DbReader, DbReaderBuilder, ReaderMode, ReaderOptions

from windlass.core.errors import SchemaMissing, StoreCorrupt, StoreUnavailable
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.database import Database, Reader, within
from windlass.stores.slatedb.fast_calls import speed_up
from windlass.stores.slatedb.faults import ENGINE_ERRORS, NOT_OPENED, forked, translate
from windlass.stores.slatedb.objects import objects_of
from windlass.stores.slatedb.settings import cache, reader_options, settings_of

T = TypeVar("T")

_OWN_CACHE: Final = 1
_LOOKS: Final = 3
_PATIENCE: Final = 3.0
_processes: Final[set[int]] = set()


async def open_database(address: Address) -> Database:
    """Own the database at `address` from now on; whoever owned it is fenced. It is made where that is allowed."""
    _begin(address)
    if not address.create:
        await _check_there(address)
    return Database(await within(_build(address), address, NOT_OPENED), address)


async def open_reader(address: Address) -> Reader:
    """Read the database at `address`, which is there; its owner goes on, and nothing is written."""
    _begin(address)
    await _check_there(address)
    return Reader(await within(_build_reader(address, reader_options(address)), address, NOT_OPENED), address)


async def look_up(address: Address, *wanted: bytes) -> list[bytes | None]:
    """Return what these keys have in a database that is opened for this alone; None as well where there is none.

    Nothing is written, and what keeps this process from the bucket is told at once where the bucket says it.
    """
    _begin(address)
    there = replace(address, create=False)
    try:
        return await _asked_twice(lambda patient: _look_up(there, wanted, patient=patient), there)
    except SchemaMissing:
        return [None] * len(wanted)


def _begin(address: Address) -> None:
    """Begin with the engine in this process; its threads are not there in one that is forked afterwards."""
    speed_up()
    _processes.add(os.getpid())
    if len(_processes) > 1:
        raise forked(address)


async def _build(address: Address) -> Db:
    builder = DbBuilder(address.prefix, objects_of(address))
    builder.with_settings(settings_of(address))
    builder.with_db_cache(cache(address), _OWN_CACHE)
    return await builder.build()


async def _build_reader(address: Address, options: ReaderOptions) -> DbReader:
    builder = DbReaderBuilder(address.prefix, objects_of(address))
    # the other modes write a checkpoint; the types do not know that each mode is one
    builder.with_reader_mode(cast("ReaderMode", ReaderMode.FOLLOW_LATEST()))
    builder.with_options(options)
    builder.with_db_cache(cache(address), _OWN_CACHE)
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
        return await within(ask(False), address, NOT_OPENED)  # noqa: FBT003 - as above
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
        raise translate(error, address, NOT_OPENED) from error


async def _look_up(address: Address, wanted: Sequence[bytes], *, patient: bool) -> list[bytes | None]:
    for left in reversed(range(_LOOKS)):
        try:
            reader = await _build_reader(address, reader_options(address, once=True, patient=patient))
            try:
                return [await reader.get(key) for key in wanted]
            finally:
                await reader.shutdown()
        except ENGINE_ERRORS as error:
            # its owner may have removed, meanwhile, what it has merged into another table
            if not (left and isinstance(translate(error, address), StoreCorrupt)):
                raise
    raise AssertionError
