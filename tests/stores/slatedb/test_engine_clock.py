"""A machine whose clock is behind that of the one that wrote last: the engine would take nothing that it writes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from slatedb.uniffi import Error

from tests.stores.slatedb.opened import opened, store_at
from windlass.core.duration import ZERO
from windlass.core.errors import StoreUnavailable
from windlass.core.queries import CheckStore
from windlass.stores.slatedb import engine_clock, keys, owner
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.check import check
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.doors import look_up, open_database
from windlass.stores.slatedb.engine_clock import Last
from windlass.stores.slatedb.faults import translate
from windlass.stores.slatedb.owner import check_free
from windlass.stores.slatedb.view import ReadState

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return Address("file", "", str(tmp_path / "jobs"))


@pytest.fixture
async def database(address: Address) -> AsyncIterator[Database]:
    """A database that another process owns, as it were."""
    database = await open_database(address)
    yield database
    await database.close()


async def write(database: Database, key: bytes, value: bytes) -> None:
    await database.write({key: value})
    await database.flush()


def ahead(by: timedelta) -> bytes:
    return msgspec.json.encode(Last(datetime.now(UTC) + by))


async def test_whoever_is_too_far_behind_fences_nobody(address: Address, database: Database) -> None:
    await write(database, keys.LAST, ahead(MINUTE))

    with pytest.raises(StoreUnavailable, match=r"clock of this machine is (59|60) s behind.*time server") as behind:
        await store_at(replace(address, take_over=True)).open()

    assert behind.value.retryable
    await write(database, b"a", b"the one before goes on")


async def test_a_small_lag_is_waited_out(address: Address, database: Database) -> None:
    await write(database, keys.LAST, ahead(SECOND / 2))
    await database.close()

    async with opened(address):
        [last] = await look_up(address, keys.LAST)

    assert engine_clock.behind(last) == ZERO


async def test_an_owner_that_has_left_leaves_behind_when_it_wrote_last(address: Address) -> None:
    began = datetime.now(UTC)
    async with opened(address):
        pass

    record, last = await look_up(address, keys.OWNER, keys.LAST)

    assert record is None
    assert last is not None
    assert began <= msgspec.json.decode(last, type=Last).written_at <= datetime.now(UTC)


async def test_a_store_of_before_is_known_by_the_heartbeat_of_its_owner(address: Address, database: Database) -> None:
    now = datetime.now(UTC)
    elsewhere = msgspec.structs.replace(owner.here(now + MINUTE), machine="another")
    await write(database, keys.OWNER, owner.encode(elsewhere))

    with pytest.raises(StoreUnavailable, match="s behind"):
        await check_free(replace(address, take_over=True), now)


async def test_doctor_tells_of_a_lag(address: Address, database: Database) -> None:
    await write(database, keys.LAST, ahead(MINUTE))

    state = ReadState(database, datetime.now(UTC), address)
    found = {finding.name: finding for finding in await check(state, CheckStore())}

    assert found["clock of the owner"].level == "warning"
    assert "s behind" in found["clock of the owner"].message


def test_a_write_that_comes_before_the_last_one_names_the_clock(address: Address) -> None:
    errors: Any = Error
    refused = errors.Invalid(
        message="Invalid error: invalid clock tick, must be monotonic. last_tick=`1795034838113`, "
        "next_tick=`1795034829067`"
    )

    told = translate(refused, address)

    assert isinstance(told, StoreUnavailable)
    assert told.retryable
    assert "9 s behind" in str(told)
