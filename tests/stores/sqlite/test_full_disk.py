"""No room: the caller is told, nothing is half written, and all goes on when there is room again."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass
from proofs.readers import sqlite as reader
from tests.stores.sqlite.conftest import Disk
from windlass import Client, NewJob, StoreFull


async def test_a_full_disk_is_told_and_nothing_is_written(disk: Disk, client: Client, path: Path) -> None:
    await client.enqueue("email", b"first")
    before = reader.dump(path)

    with disk.full(), pytest.raises(StoreFull, match="free disk space") as caught:
        await client.enqueue_many([NewJob("email", b"x" * 10_000) for _ in range(20)])

    assert caught.value.retryable
    assert reader.dump(path) == before
    assert reader.integrity(path) == []


async def test_the_same_call_works_when_there_is_room_again(disk: Disk, client: Client) -> None:
    with disk.full(), pytest.raises(StoreFull):
        await client.enqueue("email", b"x" * 100_000)

    await client.enqueue("email", b"x" * 100_000)

    assert (await client.stats("email")).pending == 1


async def test_what_needs_no_room_goes_on_while_the_disk_is_full(disk: Disk, client: Client) -> None:
    await client.enqueue("email", b"work")
    with disk.full():
        with pytest.raises(StoreFull):
            await client.enqueue("email", b"x" * 100_000)
        claim = await client.claim("email")
        assert claim is not None
        await client.ack(claim)

    assert (await client.stats("email")).succeeded == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip("this user cannot mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


def make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)


async def fill(client: Client, acknowledged: list[str]) -> None:
    for _ in range(100):
        done = await client.enqueue("email", b"x" * 50_000)
        acknowledged += [done.id]


async def test_a_disk_that_is_really_full_is_told_and_works_again_by_itself(small_disk: Path) -> None:
    path = small_disk / "jobs.db"
    acknowledged = list[str]()
    async with windlass.connect(f"sqlite:///{path}") as client:
        with pytest.raises(StoreFull):
            await fill(client, acknowledged)
        refused = reader.jobs(path)
        make_room(small_disk)

        done = await client.enqueue("email", b"x" * 50_000)

    assert refused.keys() == set(acknowledged)
    assert reader.jobs(path).keys() == {*acknowledged, done.id}
    assert reader.integrity(path) == []


async def test_a_store_cannot_be_made_where_there_is_no_room(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (1024 * 1024 - 8 * 4096))

    with pytest.raises(StoreFull):
        async with windlass.connect(f"sqlite:///{small_disk}/jobs.db"):
            pass
    (small_disk / "filler").unlink()

    async with windlass.connect(f"sqlite:///{small_disk}/jobs.db") as client:
        await client.enqueue("email")
