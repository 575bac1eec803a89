import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.slatedb.s3 import new_bucket_url, running
from windlass.core.errors import Fenced, SchemaMissing, StoreCorrupt, StoreUnavailable
from windlass.store_url import parse
from windlass.stores.slatedb.address import Address, read_address
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.doors import look_up, open_database, open_reader

PATIENCE = 30.0
EVERY = (b"\0", b"\xff")


def address_of(url: str) -> Address:
    parts = parse(url, ["slatedb+memory", "slatedb+file", "slatedb+s3"])
    return read_address(parts.scheme, parts.host, parts.path, parts.options)


@pytest.fixture(params=["memory", "file", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Address]:
    with ExitStack() as stack:
        urls: dict[str, Callable[[], str]] = {
            "memory": lambda: f"slatedb+memory://{tmp_path.name}",
            "file": lambda: f"slatedb+file://{tmp_path}/made/jobs",
            "s3": lambda: stack.enter_context(new_bucket_url()),
        }
        yield address_of(urls[request.param]())


async def eventually(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await what():  # noqa: ASYNC110 - the engine signals nothing
            await asyncio.sleep(0.02)


async def test_what_is_written_is_read_at_once(address: Address) -> None:
    database = await open_database(address)

    await database.write({b"a": b"1", b"b": b""})
    await database.write({b"a": None, b"c": b"3"})

    assert [await database.get(key) for key in (b"a", b"b", b"c", b"d")] == [None, b"", b"3", None]
    await database.close()


async def test_what_is_durable_is_there_for_the_next_owner(address: Address) -> None:
    first = await open_database(address)
    await first.write({b"a": b"1"})
    await first.flush()

    second = await open_database(address)

    assert await second.get(b"a") == b"1"
    await first.close()
    await second.close()


async def test_keys_are_in_the_order_of_their_bytes(address: Address) -> None:
    chance = random.Random(1)
    rows = {b"k" + chance.randbytes(chance.randrange(9)): chance.randbytes(chance.randrange(300)) for _ in range(500)}
    database = await open_database(address)
    await database.write(rows)
    expected = sorted(rows.items())

    assert await database.scan(b"k", b"l", limit=1000) == expected
    assert await database.scan(b"k", b"l", limit=1000, reverse=True) == expected[::-1]
    start, end = expected[100][0], expected[200][0]
    assert await database.scan(start, end, limit=1000) == expected[100:200]
    assert await database.scan(start, end, limit=7) == expected[100:107]
    assert await database.scan(start, end, limit=7, reverse=True) == expected[193:200][::-1]
    await database.close()


@pytest.mark.parametrize("start, end, limit", [(b"b", b"b", 9), (b"c", b"b", 9), (b"a", b"z", 0), (b"x", b"z", 9)])
async def test_a_scan_of_nothing_finds_nothing(tmp_path: Path, start: bytes, end: bytes, limit: int) -> None:
    database = await open_database(address_of(f"slatedb+memory://{tmp_path.name}"))
    await database.write({b"b": b"1"})

    assert await database.scan(start, end, limit=limit) == []
    await database.close()


async def test_a_write_of_nothing_changes_nothing(tmp_path: Path) -> None:
    database = await open_database(address_of(f"slatedb+memory://{tmp_path.name}"))

    await database.write({})
    await database.flush()

    assert await database.scan(*EVERY, limit=9) == []
    await database.close()


async def test_a_snapshot_stays_as_it_was(address: Address) -> None:
    database = await open_database(address)
    await database.write({b"a": b"1", b"b": b"2"})

    before = await database.snapshot()
    await database.write({b"a": None, b"b": b"3", b"c": b"4"})
    await database.flush()

    assert await before.scan(*EVERY, limit=9) == [(b"a", b"1"), (b"b", b"2")]
    assert await before.get(b"c") is None
    assert await database.scan(*EVERY, limit=9) == [(b"b", b"3"), (b"c", b"4")]
    await database.close()


async def test_a_reader_follows_what_becomes_durable(address: Address) -> None:
    database = await open_database(address)
    await database.write({b"a": b"1"})
    await database.flush()
    reader = await open_reader(replace(address, look=True, create=False))
    assert await reader.get(b"a") == b"1"

    await database.write({b"a": None, b"b": b"2"})
    await database.flush()

    async def has_followed() -> bool:
        return await reader.scan(*EVERY, limit=9) == [(b"b", b"2")]

    await eventually(has_followed)
    assert not database.fenced
    await reader.close()
    await database.close()


async def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    address = address_of(f"slatedb+file://{tmp_path}")
    database = await open_database(address)
    await database.write({b"a": b"1"})
    await database.flush()
    await database.close()
    before = everything_in(tmp_path)

    reader = await open_reader(address)
    await reader.get(b"a")
    await reader.close()
    [found] = await look_up(address, b"a")

    assert found == b"1"
    assert everything_in(tmp_path) == before


def everything_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_the_second_who_opens_a_database_owns_it(address: Address) -> None:
    first = await open_database(address)
    await first.write({b"a": b"durable"})
    await first.flush()
    second = await open_database(address)

    await write_if_possible(first)
    with pytest.raises(Fenced, match="this one must stop"):
        await first.flush()

    assert first.fenced
    await second.write({b"b": b"1"})
    await second.flush()
    assert not second.fenced
    assert await second.scan(*EVERY, limit=9) == [(b"a", b"durable"), (b"b", b"1")]
    await first.close()
    await second.close()


async def write_if_possible(database: Database) -> None:
    """Write as an owner does that does not know yet that it is none."""
    try:
        await database.write({b"a": b"doomed"})
    except Fenced:
        return


async def test_an_idle_owner_learns_that_it_is_none_any_more(address: Address) -> None:
    first = await open_database(address)
    assert not first.fenced

    second = await open_database(address)

    async def is_known() -> bool:
        return first.fenced

    await eventually(is_known)
    with pytest.raises(Fenced):
        await first.get(b"a")
    await first.close()
    await second.close()


async def test_where_there_is_no_database_nobody_makes_one_unasked(address: Address) -> None:
    asked_not_to = replace(address, create=False)

    with pytest.raises(SchemaMissing, match="no database"):
        await open_database(asked_not_to)
    with pytest.raises(SchemaMissing, match="no database"):
        await open_reader(address)
    assert await look_up(address, b"a") == [None]
    if address.kind == "file":
        assert not Path(address.path).exists()


async def test_a_database_in_memory_lives_as_long_as_the_process(tmp_path: Path) -> None:
    address = address_of(f"slatedb+memory://{tmp_path.name}")
    database = await open_database(address)
    await database.write({b"a": b"1"})
    await database.close()

    again = await open_database(address)
    other = await open_database(address_of(f"slatedb+memory://{tmp_path.name}-other"))

    assert await again.get(b"a") == b"1"
    assert await other.get(b"a") is None
    await again.close()
    await other.close()


async def test_many_flushes_become_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twenty(_: Address) -> int:
        return 20

    monkeypatch.setattr("windlass.stores.slatedb.database.flushes_to_a_table", twenty)
    database = await open_database(address_of(f"slatedb+file://{tmp_path}"))
    for number in range(20):
        await database.write({b"%d" % number: b""})
        await database.flush()

    async def is_a_table() -> bool:
        return any((tmp_path / "compacted").glob("*.sst"))

    await eventually(is_a_table)
    assert len(await database.scan(*EVERY, limit=99)) == 20
    await database.close()


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = await open_database(address_of(f"slatedb+memory://{tmp_path.name}"))
    await database.close()

    with pytest.raises(StoreUnavailable, match="is closed"):
        await database.get(b"a")
    await database.close()


async def test_a_damaged_database_is_named_and_left_alone(tmp_path: Path) -> None:
    address = address_of(f"slatedb+file://{tmp_path}")
    await (await open_database(address)).close()
    for manifest in (tmp_path / "manifest").iterdir():
        manifest.write_bytes(manifest.read_bytes()[: manifest.stat().st_size // 2])
    before = everything_in(tmp_path)

    with pytest.raises(StoreCorrupt, match=str(tmp_path)):
        await open_database(address)

    assert everything_in(tmp_path) == before


async def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("no folder")

    with pytest.raises(StoreUnavailable, match="jobs"):
        await open_database(address_of(f"slatedb+file://{tmp_path}/jobs"))
    with pytest.raises(StoreUnavailable, match="jobs"):
        await open_database(address_of(f"slatedb+file://{tmp_path}/jobs/inside"))


async def test_what_was_read_from_a_bucket_is_not_asked_for_again() -> None:
    with new_bucket_url() as url:
        database = await open_database(address_of(url))
        await database.write({b"%03d" % number: bytes(100) for number in range(200)})
        await database.close()
        again = await open_database(address_of(url))
        assert len(await again.scan(*EVERY, limit=150)) == 150
        await again.get(b"100")
        before = tables_read()

        for _ in range(20):
            await again.scan(*EVERY, limit=150)
            await again.get(b"100")

        assert tables_read() - before < 20
        await again.close()


def tables_read() -> int:
    """Return how often a table was asked for; the manifest is looked at all the time."""
    return sum(times for key, times in running().server.reads.items() if key.endswith(".sst"))
