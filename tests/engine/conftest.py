"""A client on a memory store, and a clock that stands still."""

from collections.abc import AsyncIterator

import pytest

import windlass
from windlass.client.client import Client
from windlass.testing import FakeClock, SeededRng


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock, rng=SeededRng()) as client:
        yield client
