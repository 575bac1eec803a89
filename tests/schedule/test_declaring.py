import logging
from collections.abc import AsyncIterator

import pytest

from tests.schedule.given import a_client, a_declared
from windlass.client.client import Client
from windlass.schedule.declaring import Declaring
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.served import FailingStore

BOTH = [a_declared("first", "* * * * *"), a_declared("second", 60)]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with a_client(clock) as client:
        yield client


async def test_what_is_declared_is_written_once(client: Client, clock: FakeClock) -> None:
    first, again = (Declaring(client, BOTH, clock=clock, rng=SeededRng()) for _ in range(2))

    await first.attempt()
    written = await client.schedules.list()
    await again.attempt()
    await again.attempt()

    assert [(schedule.id, schedule.declared, schedule.kind) for schedule in written] == [
        ("first", True, "tidy"),
        ("second", True, "tidy"),
    ]
    # with the same revisions: servers that start do not disturb each other
    assert await client.schedules.list() == written
    assert (set(first.written), first.again_at) == ({"first", "second"}, None)


async def test_one_that_cannot_be_written_is_told_of_and_stops_no_other(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    made = Declaring(client, [a_declared("bad", args={"texd": ""}), *BOTH], clock=clock, rng=SeededRng())

    await made.attempt()
    await made.attempt()

    assert (set(made.written), made.again_at) == ({"first", "second"}, None)
    [record] = [record for record in caplog.records if record.name == "windlass"]
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "schedule 'bad' is declared and cannot be written: it does not fire from here"


async def test_what_the_store_does_not_take_is_tried_again_later(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(client.store)
    failing.failing["write_schedule"] = 3
    async with a_client(clock, failing) as other:
        made = Declaring(other, BOTH, clock=clock, rng=SeededRng())

        await made.attempt()
        assert not made.written
        assert 0.37 < (made.again_at or 0) < 0.63
        await made.attempt()
        assert failing.failed["write_schedule"] == 2

        clock.advance(1)
        await made.attempt()
        assert len(made.written) == 1
        clock.advance(2)
        await made.attempt()

    assert (set(made.written), made.again_at) == ({"first", "second"}, None)
    line = "schedule 'first' is declared and could not be written, it is tried again: no write_schedule today"
    assert line in caplog.text
