"""Each store whose steps can be recorded, open and empty."""

from collections.abc import AsyncIterator

import pytest

from tests.steps.recorders import RECORDERS
from tests.steps.recording import Recording
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=RECORDERS)
async def recording(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Recording]:
    async with RECORDERS[request.param](clock) as recording:
        yield recording
