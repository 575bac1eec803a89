"""Enqueues that share a commit: what one of them has to wait for is nothing to the others (SPEC 2.5)."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from uuid import uuid4

import pytest

import windlass
from tests.stores.postgres.racing import connection_to
from windlass import Client, StoreUnavailable
from windlass.core.job import PreparedJob
from windlass.stores.postgres import enqueuer
from windlass.stores.postgres.moves.enqueue import insert_plain
from windlass.stores.postgres.work import Changes

DEADLINE: Final = 2.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""


@pytest.fixture
async def client(schema: str) -> AsyncIterator[Client]:
    async with windlass.connect(f"{schema}&timeout={DEADLINE}") as client:
        # a first one, so that connections are there
        await asyncio.gather(*(client.enqueue("warm", b"") for _ in range(4)))
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("delay", [None, 60], ids=["alike", "of all sorts"])
async def test_an_id_of_an_open_transaction_keeps_only_its_own_caller_waiting(
    client: Client, schema: str, delay: int | None
) -> None:
    taken = str(uuid4())
    async with connection_to(schema) as somebody, somebody.transaction():
        await client.enqueue("q", b"", id=taken, connection=somebody)
        began = time.monotonic()
        first = asyncio.create_task(client.enqueue("q", b""))
        waiting = asyncio.create_task(client.enqueue("q", b"", id=taken, delay=delay))
        others = [asyncio.create_task(client.enqueue("q", b"", delay=delay)) for _ in range(5)]
        await asyncio.wait([first, *others])
        # whoever comes while that one waits is not held up either
        assert (await client.enqueue("q", b"")).created
        quick = time.monotonic() - began
        assert not waiting.done()
        with pytest.raises(StoreUnavailable, match="gave up waiting") as raised:
            await waiting
        ended = time.monotonic() - began

    assert all(done.result().created for done in [first, *others])
    assert raised.value.retryable
    assert quick < DEADLINE / 2
    assert ended < DEADLINE + SPARE


async def test_who_waits_for_an_id_finds_the_job_when_the_transaction_commits(client: Client, schema: str) -> None:
    taken = str(uuid4())
    async with connection_to(schema) as somebody:
        async with somebody.transaction():
            await client.enqueue("q", b"", id=taken, connection=somebody)
            waiting = [asyncio.create_task(client.enqueue("q", b"", id=taken)) for _ in range(3)]
            other = await client.enqueue("q", b"")
        done = await asyncio.gather(*waiting)

    assert other.created
    assert [(one.id, one.created) for one in done] == [(taken, False)] * 3
    assert (await client.stats("q")).pending == 2


@pytest.mark.parametrize("brings", [{"payload": b"." * 8_000}, {"payload": b"", "headers": {"h": "." * 8_000}}])
async def test_enqueues_that_bring_much_do_not_all_share_one_statement(
    monkeypatch: pytest.MonkeyPatch, client: Client, brings: dict[str, Any]
) -> None:
    # as much as makes up a statement, in the proportion that there is
    monkeypatch.setattr(enqueuer, "BYTES_EACH", 40)
    shared: list[int] = []

    def counted(changes: Changes, jobs: Sequence[PreparedJob], *given: Any, **more: Any) -> Any:  # noqa: ANN401
        shared.append(len(jobs))
        return insert_plain(changes, jobs, *given, **more)

    monkeypatch.setattr(enqueuer, "insert_plain", counted)

    await asyncio.gather(*(client.enqueue("q", **brings) for _ in range(20)))

    # each weighs 201, and a statement holds 1,000
    assert (max(shared), sum(shared)) == (4, 20)
