from dataclasses import replace
from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.engine.heart import new_record
from windlass.engine.strangers import StrangerWatch
from windlass.system import TaskSpawn
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(",")[0] for record in caplog.records if record.name == "windlass"]


@pytest.fixture
def watch(client: Client, clock: FakeClock) -> StrangerWatch:
    return StrangerWatch(
        client.store, ["email"], ["send"], dead_after=MINUTE, clock=clock, rng=client.rng, spawn=TaskSpawn()
    )


async def test_a_kind_that_nobody_knows_is_said_once(
    client: Client, watch: StrangerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    await client.enqueue("email", b"", kind="resize")
    await client.enqueue("email", b"", kind="send")
    await client.enqueue("email", b"")

    await watch.tick()
    await watch.tick()

    assert said(caplog) == ["jobs of kind 'resize' wait in queue 'email'"]


async def test_a_kind_that_a_live_server_knows_is_none_of_our_worry(
    client: Client, clock: FakeClock, watch: StrangerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    await client.enqueue("email", b"", kind="resize")
    await client.store.beat(replace(new_record("other#1", clock=clock), kinds=("resize",)))

    await watch.tick()
    assert said(caplog) == []

    clock.advance(MINUTE + timedelta(seconds=1))
    await watch.tick()
    assert len(said(caplog)) == 1
