"""Several stores on one file: in one process, and in others."""

import asyncio
import os
import time
from pathlib import Path

import pytest

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Ledger, Tail
from windlass import CancelOutcome, Client, Completed


async def test_two_stores_of_one_process_share_one_file(client: Client, url: str) -> None:
    async with windlass.connect(url) as other:
        jobs = [(await each.enqueue("email")).id for _ in range(20) for each in (client, other)]
        claims = [claim for each in (other, client) for claim in await each.claim_many("email", limit=20)]
        await asyncio.gather(*(client.ack(claim) for claim in claims))

    assert [claim.job.id for claim in claims] == jobs
    assert (await client.stats("email")).succeeded == 40


async def test_one_store_goes_on_when_another_of_its_process_is_closed(client: Client, url: str) -> None:
    async with windlass.connect(url) as other:
        await other.enqueue("email")
    await client.enqueue("email")

    assert (await client.stats("email")).pending == 2


async def test_a_store_in_the_same_process_wakes_a_waiter(client: Client, url: str) -> None:
    async with windlass.connect(url, poll_interval=600) as other:
        waiting = asyncio.create_task(other.claim("email", wait=30))
        await asyncio.sleep(0)
        await client.enqueue("email")
        claim = await asyncio.wait_for(waiting, 5)

    assert claim is not None


async def test_a_store_opened_by_many_at_once_is_made_once(url: str) -> None:
    clients = [windlass.connect(url) for _ in range(8)]
    await asyncio.gather(*(each.open() for each in clients))
    await asyncio.gather(*(each.enqueue("email") for each in clients))

    stats = await clients[0].stats("email")
    await asyncio.gather(*(each.close() for each in clients))

    assert stats.pending == 8


async def claim_and_settle(ledger: Ledger, url: str) -> None:
    """Wait for jobs, far longer than any look by the clock would take, and settle each."""
    async with windlass.connect(url, poll_interval=600) as client:
        ledger.write("started")
        while (claim := await client.claim("email", wait=60)) is not None and claim.job.payload != b"stop":
            ledger.write("effect", claim.job.id)
            if claim.job.payload == b"cancel":
                await asyncio.wait_for(claim.cancelled.wait(), 30)
            await client.ack(claim)


async def test_news_reach_a_waiter_in_another_process(client: Client, url: str, path: Path) -> None:
    ledger = path.with_name("ledger")
    tail = Tail(ledger)

    def seen(count: int) -> bool:
        tail.look()
        return len(tail.entries) >= count

    with Children(ledger) as children:
        children.start("consumer", claim_and_settle, url)
        assert await asyncio.to_thread(eventually, lambda: seen(1))
        took = list[float]()
        for number in range(10):
            began = time.monotonic()
            job = (await client.enqueue("email")).id
            done = await client.wait(job, timeout=30)
            took.append(time.monotonic() - began)
            assert isinstance(done, Completed), number
        await client.enqueue("email", b"stop")
        assert await asyncio.to_thread(children.wait, 30) == []

    assert max(took) < 2


async def test_a_cancel_reaches_the_holder_in_another_process(client: Client, url: str, path: Path) -> None:
    ledger = path.with_name("ledger")
    tail = Tail(ledger)

    def claimed() -> bool:
        tail.look()
        return any(entry.event == "effect" for entry in tail.entries)

    with Children(ledger) as children:
        children.start("consumer", claim_and_settle, url)
        job = (await client.enqueue("email", b"cancel")).id
        assert await asyncio.to_thread(eventually, claimed)
        outcome = await client.cancel(job)
        done = await client.wait(job, timeout=20)
        await client.enqueue("email", b"stop")
        assert await asyncio.to_thread(children.wait, 30) == []

    assert outcome is CancelOutcome.REQUESTED
    assert isinstance(done, Completed)


def locks_held(path: Path) -> list[tuple[str, ...]]:
    """The locks that SQLite holds for this process, as the system tells them."""
    files = {str(Path(f"{path}{suffix}").stat().st_ino): suffix for suffix in ("", "-shm")}
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    ours = [row for row in rows if row[1] == "POSIX" and row[4] == str(os.getpid())]
    return sorted((files[inode], *row[6:8]) for row in ours if (inode := row[5].rpartition(":")[2]) in files)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system does not tell its locks")
async def test_opening_and_closing_one_store_drops_no_lock_of_another(client: Client, url: str, path: Path) -> None:
    await client.enqueue("email")
    before = locks_held(path)

    async with windlass.connect(url) as other:
        await other.enqueue("email")
        during = locks_held(path)
    after = locks_held(path)

    assert before
    assert before == during == after
