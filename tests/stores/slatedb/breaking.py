"""Databases that break under their owner, and callers who try again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

import pytest
from slatedb.uniffi import FlushOptions, FlushType

from tests.stores.slatedb.opened import PATIENCE, engine_of
from windlass.core.errors import OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.stores.slatedb import SlateStore

T = TypeVar("T")


async def repeated(call: Callable[[], Awaitable[T]]) -> tuple[T, list[WindlassError]]:
    """Call until it is answered, as callers do that are told to try again; return what they were told as well."""
    errors: list[WindlassError] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call(), errors
            except (OutcomeUnknown, StoreUnavailable) as error:
                errors.append(error)
                await asyncio.sleep(0.01)


async def counts_are_right(store: SlateStore) -> bool:
    """Whether the store finds that its counts are those of its jobs."""
    findings = {finding.name: finding.level for finding in await store.check()}
    return findings["counts"] == "ok"


async def breaking(store: SlateStore, at: str, call: Callable[[], Awaitable[object]]) -> WindlassError:
    """Make a call, which is done, and whose database breaks before it is answered; return what the caller is told."""
    engine = engine_of(store)
    name = {"write": "write", "flush": "flush_with_options"}[at]
    work = getattr(engine, name)

    async def done_and_broken(*arguments: object) -> NoReturn:
        setattr(engine, name, work)
        await work(*arguments)
        if at == "write":
            await engine.flush_with_options(FlushOptions(flush_type=FlushType.WAL))
        message = "broken by plan"
        raise OSError(message)

    setattr(engine, name, done_and_broken)
    with pytest.raises(WindlassError) as told:
        await call()
    return told.value
