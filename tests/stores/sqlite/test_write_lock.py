"""A write lock that somebody else holds: logged, then given up with the likely cause, and all goes on afterwards."""

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windlass import Client, StoreUnavailable


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five seconds and thirty, made short."""
    for module in ("writer", "joined"):
        monkeypatch.setattr(f"windlass.stores.sqlite.{module}.WARN_AFTER", 0.05)
        monkeypatch.setattr(f"windlass.stores.sqlite.{module}.GIVE_UP_AFTER", 0.2)


@pytest.fixture
def holder(client: Client, path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001 - it makes the file
    """A connection that has begun to write and does not end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        yield connection


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def test_a_write_that_waits_is_logged_and_then_given_up_with_the_likely_cause(
    client: Client, holder: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    assert holder.in_transaction

    with pytest.raises(StoreUnavailable, match=r"was given up: .*transaction of your own that was left open") as caught:
        await asyncio.wait_for(client.enqueue("email"), 10)

    assert caught.value.retryable
    assert [text for text in warnings(caplog) if "waits since" in text and "pass connection=" in text]


async def test_writes_go_on_when_the_lock_is_gone(client: Client, holder: sqlite3.Connection) -> None:
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(client.enqueue("email", b"given up"), 10)
    holder.execute("rollback")

    await asyncio.wait_for(client.enqueue("email", b"kept"), 10)

    assert [job.payload for job in await client.jobs()] == [b"kept"]


async def test_a_write_that_waits_is_done_when_the_lock_is_gone_in_time(
    client: Client, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.writer.GIVE_UP_AFTER", 30)
    warned = asyncio.Event()

    def warn(*_: object) -> None:
        warned.set()

    monkeypatch.setattr("windlass.stores.sqlite.writer.logger.warning", warn)
    waiting = asyncio.create_task(client.enqueue("email"))
    await asyncio.wait_for(warned.wait(), 10)
    was_waiting = not waiting.done()
    holder.execute("rollback")

    await asyncio.wait_for(waiting, 10)

    assert was_waiting
    assert (await client.stats("email")).pending == 1


async def test_looks_are_not_held_up_by_a_write_lock(client: Client, holder: sqlite3.Connection) -> None:
    assert holder.in_transaction

    stats = await asyncio.wait_for(client.stats(), 10)

    assert stats.pending == 0


async def test_a_cancelled_call_writes_nothing_when_the_lock_is_gone(
    client: Client, holder: sqlite3.Connection
) -> None:
    waiting = asyncio.create_task(client.enqueue("email", b"cancelled"))
    await asyncio.sleep(0)
    waiting.cancel()
    holder.execute("rollback")

    await asyncio.wait_for(client.enqueue("email", b"kept"), 10)

    assert [job.payload for job in await client.jobs()] == [b"kept"]


async def test_a_write_in_a_callers_transaction_waits_warns_and_gives_up_as_well(
    client: Client, holder: sqlite3.Connection, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(path, timeout=0)) as mine:
        with pytest.raises(StoreUnavailable, match="most likely a transaction that was left open") as caught:
            await asyncio.wait_for(client.enqueue("email", connection=mine), 10)
        holder.execute("rollback")
        await asyncio.wait_for(client.enqueue("email", connection=mine), 10)
        mine.commit()

    assert caught.value.retryable
    assert [text for text in warnings(caplog) if "caller's transaction" in text]
    assert (await client.stats("email")).pending == 1
