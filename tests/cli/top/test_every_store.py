"""What is shown can be looked at on every store."""

from collections.abc import AsyncIterator, Callable

import pytest

import windlass
from windlass import Client, NewJob
from windlass.cli.top import frame as frames
from windlass.cli.top.frame import Looker
from windlass.cli.top.rows import dead_table, job_table, queue_table, server_table
from windlass.cli.top.summary import summary
from windlass.cli.top.wanted import read_wanted
from windlass.client.claims import DEAD_AFTER
from windlass.client.job_ids import found_id
from windlass.core.looks import ServerRecord
from windlass.core.store import Store
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect(new_store(), clock=clock, max_attempts=1) as client:
        yield client


async def test_a_frame_has_the_jobs_that_died_last(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "DEAD", 2)
    await client.enqueue_many([NewJob("email") for _ in range(3)])
    first, second, third = await client.claim_many("email", limit=3)
    for claim in (third, second, first):
        clock.advance(1)
        await client.dead_letter(claim, "refused")

    frame = await Looker(client).look()

    assert [job.id for job in frame.dead] == [first.job.id, second.job.id]


async def test_a_frame_shows_queues_jobs_servers_and_what_died_and_how_fast(client: Client, clock: FakeClock) -> None:
    looker, now = Looker(client), clock.now()
    await client.store.beat(ServerRecord("web#1", "web", "box", 7, "1", now, now, ("email",), details={"slots": "4"}))
    dead = (await client.enqueue("email", kind="send")).id
    await looker.look()
    clock.advance(2)
    claim = await client.claim("email")
    assert claim is not None
    await client.nack(claim, ConnectionError("refused"))
    await client.enqueue_many([NewJob("email", kind="send") for _ in range(3)])
    running = await client.claim("email")
    assert running is not None

    frame = await looker.look()
    rates = looker.rates(frame)
    only = await looker.look(read_wanted("state:dead"))

    assert summary(frame, rates, DEAD_AFTER) == "1 server  running 1/4  pending 2  dead 1  in 1.5/s  out 0.5/s"
    assert [cell.text for cell in queue_table(frame, rates, 80).rows[0].cells][:8] == [
        *("email", "2", "1", "0", "1", "0s", "1.5", "0.5"),
    ]
    assert job_table(frame, 80).rows[0].key == running.job.id
    assert [row.key for row in job_table(only, 80).rows] == [dead]
    assert [row.cells[1].text for row in server_table(frame, 80).rows] == ["0/4"]
    assert [(row.cells[0].text, row.cells[1].text) for row in dead_table(frame, 80).rows] == [
        ("1", "ConnectionError: refused")
    ]
    assert await found_id(client, dead[:30]) == dead
