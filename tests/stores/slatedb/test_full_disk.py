"""A folder on a disk with no room left: who waits is told so, and all goes on when there is room again."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import Held, impatient, opened
from windlass.core.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from windlass.stores.slatedb import SlateStore, faults
from windlass.stores.slatedb.address import Address

PATIENCE: Final = 30.0
LARGE: Final = 500_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of twelve megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", place], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip("this user cannot mount a small disk")
    yield place
    # lazily: what the engine has mapped is let go of a moment after it is closed
    subprocess.run(["umount", "--lazy", place], check=True)


def make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)


async def fill(store: SlateStore) -> tuple[int, BaseException | None]:
    """Enqueue until the disk is full; return how many jobs were acknowledged, and why the next one was not."""
    for number in range(100):
        try:
            await store.enqueue([job(number, payload=bytes([number]) * LARGE)])
        except OutcomeUnknown as unknown:
            return number, unknown.__cause__
    raise AssertionError


async def until_it_goes_on(store: SlateStore, number: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await store.enqueue([job(number)])
            except (OutcomeUnknown, StoreUnavailable):
                continue
            return


async def test_a_disk_that_is_really_full_is_told_and_works_again_by_itself(small_disk: Path) -> None:
    async with opened(Address("file", "", str(small_disk / "jobs"), timeout=1.0)) as store:
        acknowledged, why = await fill(store)
        with pytest.raises(StoreFull, match=r"disk is full, with \d\.\d MiB free: free some") as full:
            await store.stats()
        make_room(small_disk)

        await until_it_goes_on(store, 200)

        assert isinstance(why, StoreFull)
        assert full.value.retryable
        found = await store.get([numbered(number) for number in [*range(acknowledged), 200]])
        assert all(each is not None for each in found)


async def test_who_waited_behind_others_is_told_too_that_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(Address("file", "", str(tmp_path))) as store:
        # its deadline comes before that of the flush
        held = Held(store, given_up=False)
        monkeypatch.setattr(faults, "LEAST_FREE", 1 << 62)
        with impatient(store), pytest.raises(OutcomeUnknown) as unknown:
            await store.enqueue([job(1)])
        await held.let_go()

    assert isinstance(unknown.value.__cause__, StoreFull)


async def test_a_deadline_on_a_disk_with_room_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LEAST_FREE", 0)
    async with opened(Address("file", "", str(tmp_path))) as store:
        held = Held(store)
        with impatient(store), pytest.raises(OutcomeUnknown) as unknown:
            await store.enqueue([job(1)])
        await held.let_go()

    assert type(unknown.value.__cause__) is StoreUnavailable
    assert "its disk or the machine is overloaded" in str(unknown.value.__cause__)


async def test_a_store_is_not_opened_on_a_full_disk_and_says_why(small_disk: Path) -> None:
    (small_disk / "jobs").mkdir()
    (small_disk / "filler").write_bytes(bytes(12 << 20))

    with pytest.raises(StoreFull, match="was not opened: its disk is full") as full:
        async with opened(Address("file", "", str(small_disk / "jobs"), timeout=1.0)):
            pass

    assert full.value.retryable
