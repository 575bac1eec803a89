"""Turns between processes, as a store that is being opened or written meets them."""

import asyncio
import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import windlass
from windlass import Client, InvalidValue, StoreUnavailable
from windlass.core.failpoint import arm, disarm


@contextmanager
def turn_of_another(path: Path) -> Generator[None, None, None]:
    """Have the turn, as a process would that was stopped while it had it."""
    door = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield
    finally:
        os.close(door)


async def test_a_store_that_cannot_be_opened_in_time_says_who_is_in_the_way(
    url: str, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.turns.WARN_AFTER", 0.05)
    monkeypatch.setattr("windlass.stores.sqlite.turns.GIVE_UP_AFTER", 0.1)

    with turn_of_another(path), pytest.raises(StoreUnavailable, match="has the turn") as refused:
        await windlass.connect(url).open()

    assert refused.value.retryable
    assert "waits to be opened" in caplog.text


async def test_a_store_opens_when_the_turn_is_given_back(url: str, path: Path) -> None:
    with turn_of_another(path):
        opening = asyncio.create_task(windlass.connect(url).open())
        await asyncio.sleep(0)

    await opening


async def test_a_claim_in_the_commit_that_brings_the_first_job_of_a_queue_is_given_it(client: Client) -> None:
    done, claim = await asyncio.gather(client.enqueue("new", b"first"), client.claim("new"))

    assert claim is not None
    assert claim.job.id == done.id


@pytest.mark.parametrize("quick, here", [(60.0, True), (0.0, False)])
async def test_a_lone_call_is_committed_on_the_loop_while_the_disk_is_quick(
    client: Client, monkeypatch: pytest.MonkeyPatch, *, quick: float, here: bool
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.writer.QUICK", quick)
    threads: set[int] = set()
    arm("sqlite.before_commit", lambda: threads.add(threading.get_ident()))

    # the first commit tells how quick the disk is, and its thread may not have let go when the second call comes
    for _ in range(20):
        await client.enqueue("email")

    disarm()
    assert (threading.get_ident() in threads) is here


async def test_a_turn_of_another_never_holds_back_the_event_loop(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.writer.QUICK", 60.0)
    await client.enqueue("email")

    with turn_of_another(path):
        waiting = asyncio.create_task(client.enqueue("email"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()

    assert (await waiting).created


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has autocommit from Python 3.12 on")
async def test_a_connection_that_commits_by_itself_is_refused(client: Client, path: Path) -> None:
    arguments: dict[str, Any] = {"autocommit": True}
    connection = sqlite3.connect(path, **arguments)

    with pytest.raises(InvalidValue, match="BEGIN IMMEDIATE"):
        await client.enqueue("email", connection=connection)

    assert not connection.in_transaction
    connection.close()


async def test_a_connection_that_was_closed_is_refused(client: Client, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.close()

    with pytest.raises(InvalidValue, match="closed"):
        await client.enqueue("email", connection=connection)
