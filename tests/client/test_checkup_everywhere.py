"""What `doctor` looks at can be looked at on every store."""

from collections.abc import AsyncIterator, Callable

import pytest

import windlass
from windlass import Client
from windlass.client.checkup import checkup, worst
from windlass.core.moving import Moved
from windlass.core.store import Store
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect(new_store(), clock=clock) as client:
        yield client


async def test_every_store_is_looked_over_and_says_when_it_was_moved(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email")
    await client.claim("email", lease=1)
    clock.advance(100)

    before = await checkup(client.store, clock=clock.now)
    await client.store.set_moved(Moved("redis://there", "m"))
    after = {finding.name: finding for finding in await checkup(client.store, clock=clock.now)}

    assert len({finding.name for finding in before}) == len(before)
    assert {"versions", "clock", "leases", "stuck", "waits", "backlog", "dead", "rules"} <= after.keys()
    assert worst(before) == "error"
    assert all(finding.advice for finding in (*before, *after.values()) if finding.level != "ok")
    assert any("redis://there" in finding.message and finding.level == "warning" for finding in after.values())
