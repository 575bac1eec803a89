"""Proof that a server has ended: its lock is free, and only the end of its process frees it."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from windlass.connect import open_store
from windlass.core.looks import SERVED, ServerRecord
from windlass.core.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# beats as the servers that it is told, says so, and waits to be killed
SERVER = """
import asyncio, os, sys
from datetime import UTC, datetime
from windlass.connect import open_store
from windlass.core.looks import ServerRecord

async def serve(url, *servers):
    store = open_store(url)
    await store.open()
    for server_id, host in zip(servers[::2], servers[1::2], strict=True):
        now = datetime.now(UTC)
        await store.beat(ServerRecord(server_id, "web", host, os.getpid(), "0", now, now))
    print("beats", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(*sys.argv[1:]))
"""
# the same, with a child by fork that says so, and outlives it
FORKING = SERVER.replace(
    'print("beats", flush=True)',
    """
    import time
    if os.fork() == 0:
        print("beats", flush=True)
        time.sleep(60)
        os._exit(0)""",
)


def record(server_id: str, host: str | None = None) -> ServerRecord:
    return ServerRecord(server_id, "web", host or socket.gethostname(), os.getpid(), "0", NOW, NOW)


def files(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if "-alive-" in each.name)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        # whole groups: a child by fork is not ours to wait for
        with process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def start(processes: list[subprocess.Popen[str]], program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "beats\n"
    return process


@pytest.mark.parametrize("program", [SERVER, FORKING], ids=["alone", "with a forked child"])
async def test_a_server_whose_process_was_killed_has_ended(
    store: Store, url: str, path: Path, processes: list[subprocess.Popen[str]], program: str
) -> None:
    process = await asyncio.to_thread(start, processes, program, url, "web#1", socket.gethostname(), "web#2", "far")
    await store.beat(record("web#3"))
    assert await store.ended_servers() == []

    process.kill()
    process.wait()

    assert await store.ended_servers() == ["web#1"]
    assert len(await store.servers()) == 3
    await store.leave("web#1")
    assert await store.ended_servers() == []
    # "web#2" is said to live on another machine, where the lock of a file here means nothing
    assert len(files(path)) == 2


async def test_a_server_that_is_stopped_by_a_signal_lives(
    store: Store, url: str, processes: list[subprocess.Popen[str]]
) -> None:
    process = await asyncio.to_thread(start, processes, SERVER, url, "web#1", socket.gethostname())

    process.send_signal(signal.SIGSTOP)

    assert await store.ended_servers() == []
    process.send_signal(signal.SIGCONT)


async def test_a_server_that_leaves_takes_its_file_away(store: Store, path: Path) -> None:
    await store.beat(record("web#1"))
    await store.beat(record("web#1"))
    [name] = files(path)
    assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600

    await store.leave("web#1")

    assert files(path) == []


async def test_a_closed_store_proves_nothing_about_its_servers(store: Store, path: Path) -> None:
    other = store.sibling()
    await other.open()
    await other.beat(record("web#1"))

    await other.close()

    assert [server.id for server in await store.servers()] == ["web#1"]
    assert await store.ended_servers() == []
    assert files(path) == []


async def test_a_server_that_beats_through_two_doors_lives_while_one_is_open(store: Store) -> None:
    other = store.sibling()
    await other.open()
    await other.beat(record("web#1"))
    await store.beat(record("web#1"))

    await other.close()

    assert await store.ended_servers() == []


async def test_files_of_servers_that_nobody_knows_are_swept_away(store: Store, path: Path) -> None:
    for end in ("-alive-0123456789abcdef", "-alive-0123456789abcdef.new"):
        path.with_name(f"{path.name}{end}").touch()
    await store.beat(record("web#1"))
    await store.beat(record("web#2"))

    await store.leave("web#2")

    assert len(files(path)) == 1
    assert await store.ended_servers() == []


async def test_a_long_id_with_slashes_is_a_file_all_the_same(store: Store, path: Path) -> None:
    await store.beat(record("a/b/" + "x" * 190 + "#1"))

    assert len(files(path)) == 1


async def test_a_server_for_which_another_process_speaks_is_not_proven_to_have_ended(
    store: Store, url: str, path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    """Else the end of whoever serves the store would take their jobs from servers that live."""
    program = SERVER.replace("os.getpid()", "os.getppid()")
    process = await asyncio.to_thread(start, processes, program, url, "web#1", socket.gethostname())
    await store.beat(replace(record("web#2"), details={SERVED: "yes"}))

    process.kill()
    process.wait()

    assert [server.id for server in await store.servers()] == ["web#1", "web#2"]
    assert (await store.ended_servers(), files(path)) == ([], [])
