import os
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from windlass.core.errors import StoreCorrupt, StoreOwned
from windlass.stores.slatedb import keys, owner
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.doors import open_database
from windlass.stores.slatedb.owner import OWNER_ALIVE, Owner, check_free

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PATIENCE = 30.0
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return Address("file", "", str(tmp_path / "jobs"))


@pytest.fixture
def other() -> Generator[subprocess.Popen[bytes]]:
    """Give a process that waits."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def owner_of(process: subprocess.Popen[bytes], seen_at: datetime = NOW) -> Owner:
    mine = owner.here(NOW - 60 * SECOND)
    started = owner.started_of(process.pid)
    return msgspec.structs.replace(mine, pid=process.pid, name="other:1", started=started, seen_at=seen_at)


def elsewhere(seen_at: datetime) -> Owner:
    return msgspec.structs.replace(owner.here(NOW - 60 * SECOND), name="far:1", machine="another", seen_at=seen_at)


async def put(address: Address, record: bytes) -> None:
    database = await open_database(address)
    await database.write({keys.OWNER: record})
    await database.flush()
    await database.close()


def test_a_record_says_who_owns_a_database() -> None:
    mine = owner.here(NOW)

    assert owner.decode(owner.encode(mine)) == mine
    assert (mine.name, mine.pid) == (f"{mine.host}:{os.getpid()}", os.getpid())
    assert (mine.since, mine.seen_at) == (NOW, NOW)


def test_a_record_of_a_later_release_is_read_as_far_as_it_is_known() -> None:
    mine = owner.here(NOW)
    later = msgspec.json.encode({**msgspec.to_builtins(mine), "mood": "good"})

    assert owner.decode(later) == mine


async def test_what_is_not_there_is_free(address: Address) -> None:
    await check_free(address, NOW)

    assert not Path(address.path).exists()


async def test_a_database_whose_owner_has_left_is_free(address: Address) -> None:
    await (await open_database(address)).close()

    await check_free(address, NOW)


async def test_an_owner_that_was_seen_lately_is_let_alone(address: Address) -> None:
    await put(address, owner.encode(elsewhere(NOW)))

    with pytest.raises(StoreOwned) as owned:
        await check_free(address, NOW + OWNER_ALIVE - SECOND)

    assert (owned.value.owner, owned.value.since, owned.value.retryable) == ("far:1", NOW - 60 * SECOND, True)


async def test_an_owner_that_was_not_seen_for_long_has_gone(address: Address) -> None:
    await put(address, owner.encode(elsewhere(NOW)))

    await check_free(address, NOW + OWNER_ALIVE)


async def test_an_owner_whose_clock_is_ahead_is_let_alone(address: Address) -> None:
    await put(address, owner.encode(elsewhere(NOW + 60 * SECOND)))

    with pytest.raises(StoreOwned):
        await check_free(address, NOW)


async def test_a_database_is_taken_over_when_that_is_asked_for(address: Address) -> None:
    await put(address, owner.encode(elsewhere(NOW)))

    await check_free(replace(address, take_over=True), NOW)


async def test_an_owner_that_cannot_be_read_is_not_thrown_out_unasked(address: Address) -> None:
    await put(address, b"{}")

    with pytest.raises(StoreCorrupt, match="take_over=1"):
        await check_free(address, NOW)
    await check_free(replace(address, take_over=True), NOW)


@needs_proc
async def test_a_process_of_this_machine_that_lives_is_let_alone(
    address: Address, other: subprocess.Popen[bytes]
) -> None:
    await put(address, owner.encode(owner_of(other)))

    with pytest.raises(StoreOwned):
        await check_free(address, NOW)


@needs_proc
@pytest.mark.parametrize("waited_for", [False, True])
async def test_a_process_of_this_machine_that_was_killed_is_proven_to_have_ended(
    address: Address,
    other: subprocess.Popen[bytes],
    waited_for: bool,  # noqa: FBT001
) -> None:
    await put(address, owner.encode(owner_of(other)))

    other.kill()
    if waited_for:
        other.wait()
    until_it_ended(other.pid)

    await check_free(address, NOW)


def until_it_ended(pid: int) -> None:
    """Wait for the end of a process without taking it from the list of processes."""
    deadline = time.monotonic() + PATIENCE
    while owner.started_of(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@needs_proc
async def test_another_process_with_the_same_id_is_no_owner(address: Address, other: subprocess.Popen[bytes]) -> None:
    before = msgspec.structs.replace(owner_of(other), started="1")
    await put(address, owner.encode(before))

    await check_free(address, NOW)


@needs_proc
async def test_a_process_whose_machine_is_not_known_is_not_proven_to_have_ended(
    address: Address, other: subprocess.Popen[bytes]
) -> None:
    unknown = msgspec.structs.replace(owner_of(other), machine="")
    other.kill()
    other.wait()
    await put(address, owner.encode(unknown))

    with pytest.raises(StoreOwned):
        await check_free(address, NOW)


@needs_proc
async def test_a_process_that_cannot_be_seen_is_not_proven_to_have_ended(
    address: Address, other: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `hidepid` hides the processes of other users."""
    await put(address, owner.encode(owner_of(other)))
    monkeypatch.setattr(owner, "_PROC", tmp_path)

    with pytest.raises(StoreOwned):
        await check_free(address, NOW)

    other.kill()
    other.wait()
    await check_free(address, NOW)
