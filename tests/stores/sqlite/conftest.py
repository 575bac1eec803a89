"""A store of its own for each test, in a file."""

import sqlite3
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import windlass
from windlass import Client
from windlass.core import failpoint
from windlass.stores.sqlite import database
from windlass.stores.sqlite.database import SCHEMA, Options
from windlass.stores.sqlite.statements import migration
from windlass.stores.sqlite.turns import Turns

NO_LIMIT = 1_073_741_823


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


class Disk:
    """How much room the file has."""

    def __init__(self) -> None:
        self.connection: sqlite3.Connection | None = None

    @contextmanager
    def full(self, *, but_for: int = 0) -> Generator[None, None, None]:
        """Let the file grow by `but_for` pages and no further."""
        assert self.connection is not None
        pages = self.connection.execute("pragma page_count").fetchone()[0]
        self.connection.execute(f"pragma max_page_count = {pages + but_for}")
        try:
            yield
        finally:
            self.connection.execute(f"pragma max_page_count = {NO_LIMIT}")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk of the store that is opened next: SQLite bounds a file by the connection that writes."""
    disk = Disk()

    def open_database(path: Path, options: Options, turns: Turns) -> sqlite3.Connection:
        disk.connection = database.open_database(path, options, turns)
        return disk.connection

    monkeypatch.setattr("windlass.stores.sqlite.room.open_database", open_database)
    return disk


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        yield client


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    """A database in memory with the schema and no rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for number in range(1, SCHEMA + 1):
            connection.executescript(migration(number))
        yield connection


@pytest.fixture(autouse=True)
def no_failpoint_stays_armed() -> Iterator[None]:
    yield
    failpoint.disarm()
