"""Files that cannot be a store: each is a named error that says what to do, and each is left as it was."""

import asyncio
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import windlass
from proofs.children import SPAWN
from windlass import (
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreReadOnly,
    StoreUnavailable,
)

NOBODY = 65534


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def refusal(url: str, expected: type[StoreUnavailable]) -> StoreUnavailable:
    with pytest.raises(expected) as caught:
        async with windlass.connect(url):
            pass
    assert not caught.value.retryable
    return caught.value


async def make_store(path: Path) -> None:
    async with windlass.connect(f"sqlite:///{path}") as client:
        await client.enqueue_many([windlass.NewJob("email", b"x" * 500) for _ in range(100)])


@pytest.mark.parametrize(
    "content",
    [b"a", b"not a database\n" * 100, b"\x00" * 5000, b"SQLite format 2\x00" + b"\x00" * 84],
    ids=["one byte", "text", "zeros", "an old database"],
)
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, url: str, content: bytes) -> None:
    path.write_bytes(content)

    error = await refusal(url, StoreCorrupt)

    assert "is not a SQLite database: check the path" in str(error)
    assert contents(path.parent) == {path.name: content}


@pytest.mark.parametrize("left", [50, 99, 512, 4096, 5000, 0.3, 0.5, 0.9, -1])
async def test_a_truncated_store_is_refused_and_left_as_it_is(path: Path, url: str, left: float) -> None:
    await make_store(path)
    whole = path.stat().st_size
    os.truncate(path, int(whole * left) if 0 < left < 1 else int(left) % whole)
    before = contents(path.parent)

    error = await refusal(url, StoreCorrupt)

    assert "restore it from a backup" in str(error)
    assert contents(path.parent)[path.name] == before[path.name]


async def test_an_emptied_store_is_refused_and_not_made_anew(path: Path, url: str) -> None:
    await make_store(path)
    os.truncate(path, 0)

    error = await refusal(url, StoreCorrupt)

    assert "a store has been here: restore it from a backup" in str(error)
    assert path.stat().st_size == 0


async def test_an_empty_file_where_no_store_was_becomes_one(path: Path, url: str) -> None:
    path.touch()

    await make_store(path)

    async with windlass.connect(url) as client:
        assert (await client.stats()).pending == 100


async def test_a_damaged_page_is_told_when_it_is_read(path: Path, url: str) -> None:
    await make_store(path)
    page = 4096
    with path.open("r+b") as file:
        for number in range(1, path.stat().st_size // page):
            file.seek(number * page)
            file.write(b"\xff" * page)
    before = path.read_bytes()

    with pytest.raises(StoreCorrupt, match=r"is damaged .* restore it from a backup"):
        async with windlass.connect(url) as client:
            await client.claim("email")

    assert path.read_bytes() == before


async def test_a_file_with_flipped_bits_works_or_is_an_error_of_ours(path: Path) -> None:
    await make_store(path)
    whole = path.read_bytes()
    ends = Counter[str]()
    for seed in range(60):
        chance = random.Random(seed)
        copy = path.with_name(f"{seed}.db")
        copy.write_bytes(flipped(whole, chance))
        ends[await use(f"sqlite:///{copy}")] += 1

    assert ends.keys() <= {"works", "StoreCorrupt", "StoreUnavailable", "ClaimLost", "DecodeError"}
    assert ends["StoreCorrupt"] > 10


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Flip a few bits, half of the time where the schema is written."""
    end = len(content) if chance.random() < 0.5 else 4096
    mutable = bytearray(content)
    for _ in range(chance.randrange(1, 20)):
        mutable[chance.randrange(end)] ^= 1 << chance.randrange(8)
    return bytes(mutable)


async def use(url: str) -> str:
    try:
        async with asyncio.timeout(20), windlass.connect(url) as client:
            claims = await client.claim_many("email", limit=200)
            await asyncio.gather(*map(client.ack, claims))
            await client.enqueue("email")
            await client.jobs(limit=200)
    except windlass.WindlassError as error:
        return type(error).__name__
    return "works"


async def test_a_newer_schema_is_refused_and_not_touched(path: Path, url: str) -> None:
    await make_store(path)
    set_schema(path, 99)
    before = path.read_bytes()

    error = await refusal(url, SchemaTooNew)

    assert isinstance(error, SchemaTooNew)
    assert error.found == 99
    assert "upgrade windlass" in str(error)
    assert path.read_bytes() == before


async def test_a_newer_schema_is_refused_also_by_a_migration(path: Path, url: str) -> None:
    await make_store(path)
    set_schema(path, 99)

    await refusal(f"{url}?migrate=yes", SchemaTooNew)


async def test_an_older_schema_is_left_to_a_migration(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_store(path)
    before = path.read_bytes()
    monkeypatch.setattr("windlass.stores.sqlite.database.SCHEMA", 99)

    error = await refusal(url, SchemaTooOld)

    assert "windlass migrate" in str(error)
    assert path.read_bytes() == before


def set_schema(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update windlass_meta set value = ? where name = 'schema'", (version,))


async def test_create_no_makes_no_file(path: Path, url: str) -> None:
    error = await refusal(f"{url}?create=no", SchemaMissing)

    assert "create=no forbids" in str(error)
    assert contents(path.parent) == {}


async def test_create_no_makes_no_schema_in_a_file_of_somebody_else(path: Path, url: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table mine (n integer)")
    before = path.read_bytes()

    await refusal(f"{url}?create=no", SchemaMissing)

    assert path.read_bytes() == before


async def test_create_no_opens_a_store_that_is_there(path: Path, url: str) -> None:
    await make_store(path)

    async with windlass.connect(f"{url}?create=no") as client:
        assert (await client.stats()).pending == 100


async def test_a_store_can_live_in_a_file_of_an_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table mine (n integer)")
        connection.execute("insert into mine values (7)")

    await make_store(path)

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select n from mine").fetchall() == [(7,)]


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    error = await refusal(f"sqlite:///{tmp_path}/folder", StoreUnavailable)

    assert "is a folder: name a file in it" in str(error)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize("place", ["missing", "file"])
@pytest.mark.parametrize("options", ["", "?create=no"])
async def test_a_missing_folder_is_named(tmp_path: Path, place: str, options: str) -> None:
    (tmp_path / "file").touch()

    error = await refusal(f"sqlite:///{tmp_path}/{place}/jobs.db{options}", StoreUnavailable)

    assert f"there is no folder {tmp_path / place} for jobs.db: make it first" in str(error)
    assert [path.name for path in tmp_path.rglob("*")] == ["file"]


async def test_a_loop_of_links_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").symlink_to(tmp_path / "jobs.db")

    await refusal(f"sqlite:///{tmp_path}/jobs.db", StoreUnavailable)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    if os.getuid() != 0:
        pytest.skip("only root can act as another user")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder).resolve()


@pytest.mark.parametrize("what", ["all files", "database", "folder", "new in its folder"])
async def test_a_store_that_cannot_be_written_is_read_only(open_to_all: Path, what: str) -> None:
    path = open_to_all / "jobs.db"
    await make_store(path)
    for each in open_to_all.iterdir():
        each.chmod(0o444 if what == "all files" else 0o666)
    if what == "database":
        path.chmod(0o444)
    if what == "new in its folder":
        for each in open_to_all.iterdir():
            each.unlink()
    if what in ("folder", "new in its folder"):
        open_to_all.chmod(0o555)
    before = {path.name: path.read_bytes()} if path.exists() else {}

    answers = SPAWN.SimpleQueue()
    child = SPAWN.Process(target=open_as_nobody, args=(path, answers))
    child.start()
    child.join(30)

    assert child.exitcode == 0
    assert answers.get() == (StoreReadOnly.__name__, "give this user write access to the file and its folder")
    # who had the turn is noted beside the database; SQLite leaves an empty log where it could not close
    assert {name: content for name, content in contents(open_to_all).items() if name == path.name} == before
    child.close()
    answers.close()


def open_as_nobody(path: Path, answers: "SimpleQueue[tuple[str, str]]") -> None:
    """Open a store as a user who may read it and no more, and tell what was said."""
    asyncio.run(_warm_up(path))
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    try:
        asyncio.run(_open(path))
    except StoreUnavailable as error:
        answers.put((type(error).__name__, str(error).rpartition(": ")[2]))
    else:
        answers.put(("nothing", ""))


async def _warm_up(path: Path) -> None:
    # whoever has become nobody may no longer be able to read the interpreter's own modules
    with TemporaryDirectory() as folder:
        await _open(Path(folder) / path.name)


async def _open(path: Path) -> None:
    async with windlass.connect(f"sqlite:///{path}") as client:
        await client.stats()
