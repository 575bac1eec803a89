"""The files of a store: whose they are, by which names they are found, and what happens when they go."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import windlass
from windlass import Client, StoreUnavailable


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o177])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def test_files_are_made_for_this_user_alone_whatever_the_umask(path: Path, url: str, umask: int) -> None:
    async with windlass.connect(url) as client:
        await client.enqueue("email")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert modes.keys() >= {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-turn", "jobs.db-wake"}
    assert set(modes.values()) == {0o600}
    assert os.umask(umask) == umask


async def test_a_file_that_others_may_read_stays_so(path: Path, url: str) -> None:
    path.touch(mode=0o640)

    async with windlass.connect(url):
        mode = stat.S_IMODE(path.stat().st_mode)

    assert mode == 0o640


async def test_nothing_but_the_doors_is_left_beside_a_closed_store(path: Path, url: str) -> None:
    async with windlass.connect(url) as client:
        await client.enqueue("email")

    assert {each.name for each in path.parent.iterdir()} == {"jobs.db", "jobs.db-turn", "jobs.db-wake"}


async def test_a_store_is_the_same_by_its_link(client: Client, path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)

    async with windlass.connect(f"sqlite:///{link}", poll_interval=60) as other:
        waiting = asyncio.create_task(other.claim("email", wait=30))
        done = await client.enqueue("email")
        claim = await asyncio.wait_for(waiting, 10)

    assert claim is not None
    assert claim.job.id == done.id
    assert [each.name for each in folder.iterdir()] == ["link.db"]


async def test_a_relative_path_holds_also_when_the_program_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    async with windlass.connect("sqlite:///jobs.db") as client:
        monkeypatch.chdir(tmp_path / "elsewhere")
        for _ in range(3):
            await client.enqueue("email")
        assert (await client.stats()).pending == 3

    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "what?.db", "a#b.db", "naïve.db", "file:x.db"])
async def test_a_name_that_a_uri_would_read_otherwise_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    quoted = name.replace("%", "%25").replace("?", "%3F").replace("#", "%23")

    async with windlass.connect(f"sqlite:///{tmp_path}/{quoted}") as client:
        await client.enqueue("email")

    assert (tmp_path / name).exists()


async def refusal(client: Client) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        await client.enqueue("email")
    return caught.value


async def test_a_store_that_is_deleted_while_open_is_told(client: Client, path: Path) -> None:
    await client.enqueue("email")
    path.unlink()

    error = await refusal(client)

    assert "deleted or replaced while it was open" in str(error)
    assert not error.retryable
    assert not path.exists()


async def test_a_store_that_is_replaced_while_open_is_told_and_the_new_one_left_alone(
    client: Client, path: Path, tmp_path: Path
) -> None:
    await client.enqueue("email")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table other (n integer)")
    before = other.read_bytes()
    other.replace(path)

    error = await refusal(client)

    assert "connect again" in str(error)
    assert path.read_bytes() == before


async def test_a_store_that_is_put_back_works_on(client: Client, path: Path, tmp_path: Path) -> None:
    await client.enqueue("email")
    path.rename(tmp_path / "moved.db")
    await refusal(client)
    (tmp_path / "moved.db").rename(path)

    await client.enqueue("email")

    assert (await client.stats()).pending == 2
