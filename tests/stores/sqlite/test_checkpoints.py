"""The write-ahead log: moved into the database in time, and reported when somebody keeps it from that."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windlass import Client, NewJob
from windlass.core.failpoint import arm


@pytest.fixture(autouse=True)
def checkpoints_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.committer.CHECKPOINT_DUE_AFTER", 100)


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


async def test_the_log_is_begun_anew_instead_of_growing(client: Client, path: Path) -> None:
    async def write(rounds: int) -> int:
        for _ in range(rounds):
            await client.enqueue_many([NewJob("email", b"x" * 1000) for _ in range(50)])
        return log_of(path).stat().st_size

    first, later = await write(10), await write(40)

    assert later < 2 * first


async def test_a_checkpoint_runs_while_nobody_else_can_write(client: Client, path: Path) -> None:
    seen: list[str] = []

    def try_to_write() -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as stranger:
            try:
                stranger.execute("begin immediate")
                seen.append("could write")
            except sqlite3.OperationalError as error:
                seen.append(error.sqlite_errorname)

    arm("sqlite.checkpoint.before", try_to_write)
    await client.enqueue_many([NewJob("email") for _ in range(200)])
    await client.enqueue("email")

    assert set(seen) == {"SQLITE_BUSY"}


async def test_a_reader_that_keeps_the_log_from_being_moved_is_reported_once(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.checkpoint._REPORTED_SIZE", 1)
    await client.enqueue("email")
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("begin")
        stranger.execute("select count(*) from windlass_job").fetchone()
        for _ in range(10):
            await client.enqueue_many([NewJob("email") for _ in range(200)])

    told = [
        record.getMessage() for record in caplog.records if "has kept a read transaction open" in record.getMessage()
    ]
    assert len(told) == 1
    assert str(log_of(path)) in told[0]


async def test_writes_go_on_while_a_reader_keeps_its_snapshot(client: Client, path: Path) -> None:
    await client.enqueue("email")
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("begin")
        before = stranger.execute("select count(*) from windlass_job").fetchone()
        await client.enqueue_many([NewJob("email") for _ in range(1000)])
        same = stranger.execute("select count(*) from windlass_job").fetchone()

    assert before == same == (1,)
    assert (await client.stats("email")).pending == 1001
