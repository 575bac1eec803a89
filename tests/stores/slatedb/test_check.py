"""What `doctor` is told."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Final

import msgspec
import pytest

from tests.stores.slatedb.lived import live, numbered
from windlass.core.looks import Finding
from windlass.core.queries import CheckStore
from windlass.core.states import State
from windlass.stores.slatedb import SlateStore, keys, owner, records, recount
from windlass.stores.slatedb.address import Address, Kind
from windlass.stores.slatedb.check import check
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.doors import open_database
from windlass.stores.slatedb.queue_looks import read_queue
from windlass.stores.slatedb.view import ReadState
from windlass.testing import FakeClock, SeededRng

_numbers: Final = count()


@pytest.fixture
def address() -> Address:
    return Address("memory", f"check-{next(_numbers)}", "")


@pytest.fixture
async def database(address: Address, clock: FakeClock) -> AsyncIterator[Database]:
    """What a store has left behind."""
    store = SlateStore(address, clock=clock, rng=SeededRng())
    await store.open()
    await live(store, clock)
    await store.close()
    database = await open_database(address)
    yield database
    await database.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def _found(database: Database, address: Address, clock: FakeClock, name: str) -> Finding:
    [finding] = [
        found for found in await check(ReadState(database, clock.now(), address), CheckStore()) if found.name == name
    ]
    return finding


async def test_a_store_that_is_well_has_nothing_to_mend(address: Address, clock: FakeClock) -> None:
    store = SlateStore(address, clock=clock, rng=SeededRng())
    await store.open()
    await live(store, clock)

    findings = await store.check()
    counted = sum(getattr(row, state) for row in await store.stats() for state in State)
    await store.close()

    assert {finding.level for finding in findings} == {"ok"}
    assert [finding.name for finding in findings] == ["durability", "owner", "schema", "counts", "jobs"]
    assert findings[-1].message == f"{counted} jobs on 4 queues"
    assert findings[1].message.startswith(f"{owner.here(clock.now()).name} has owned it since 2026-01-01 12:00:00")


@pytest.mark.parametrize(
    "kind,level,says", [("memory", "ok", "gone"), ("file", "warning", "power cut"), ("s3", "ok", "bucket jobs")]
)
async def test_what_is_kept_is_told(database: Database, clock: FakeClock, kind: Kind, level: str, says: str) -> None:
    finding = await _found(database, Address(kind, "jobs", ""), clock, "durability")

    assert finding.level == level
    assert says in finding.message


async def test_a_store_that_was_left_has_no_owner(database: Database, address: Address, clock: FakeClock) -> None:
    assert (await _found(database, address, clock, "owner")).message == "no process owns it"


async def test_an_owner_that_was_not_seen_lately_owns_it_no_more(
    database: Database, address: Address, clock: FakeClock
) -> None:
    elsewhere = msgspec.structs.replace(owner.here(clock.now()), name="far:1", host="far", machine="another")
    await database.write({keys.OWNER: owner.encode(elsewhere)})
    seen = (await _found(database, address, clock, "owner")).message
    clock.advance(owner.OWNER_ALIVE + timedelta(seconds=1))

    gone = (await _found(database, address, clock, "owner")).message

    assert seen.startswith("far:1 has owned it since 2026-01-01 12:")
    assert gone.startswith("no process owns it; far:1 did until 2026-01-01 12:")


async def test_an_owner_that_cannot_be_read_is_an_error(database: Database, address: Address, clock: FakeClock) -> None:
    await database.write({keys.OWNER: b"{}"})

    finding = await _found(database, address, clock, "owner")

    assert (finding.level, finding.message) == ("error", "who owns it cannot be read")
    assert finding.advice is not None
    assert "take_over=1" in finding.advice


async def test_a_count_that_is_wrong_is_an_error(database: Database, address: Address, clock: FakeClock) -> None:
    kept = await read_queue(database, "email")
    assert kept is not None
    kept.dead += 7
    await database.write({keys.queue_record("email"): records.encode(kept)})

    finding = await _found(database, address, clock, "counts")

    assert finding.level == "error"
    assert f"email counts {kept.dead} dead jobs, {kept.dead - 7} are there" in finding.message
    assert finding.advice is not None


async def test_a_job_in_a_line_of_no_queue_is_an_error(database: Database, address: Address, clock: FakeClock) -> None:
    place = keys.line("lost", None) + keys.line_place(1, clock.now(), 999, numbered(999))
    await database.write({place: b""})

    finding = await _found(database, address, clock, "counts")

    assert (finding.level, finding.message) == ("error", "lost counts 0 pending jobs, 1 are there")


async def test_a_reader_that_sees_counts_change_only_warns(
    database: Database, address: Address, clock: FakeClock
) -> None:
    await database.write({keys.leases("email") + keys.place(clock.now(), 999, numbered(999)): b""})

    finding = await _found(database, replace(address, look=True), clock, "counts")

    assert finding.level == "warning"


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 13])
async def test_counts_agree_however_far_they_are_looked_through(
    database: Database, address: Address, clock: FakeClock, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "LOOKED_THROUGH", bound)

    finding = await _found(database, address, clock, "counts")

    assert finding.level == "ok"
    assert finding.message.endswith("as far as they were counted")


async def test_a_wrong_count_is_seen_before_the_end_of_what_is_looked_through(
    database: Database, address: Address, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await read_queue(database, "email")
    assert first is not None
    monkeypatch.setattr(recount, "LOOKED_THROUGH", first.pending + 1)
    first.lines = [(kind, waiting + 1) for kind, waiting in first.lines]
    await database.write({keys.queue_record("email"): records.encode(first)})

    assert (await _found(database, address, clock, "counts")).level == "error"
