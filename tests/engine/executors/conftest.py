from collections.abc import AsyncIterator

import pytest

from windlass.engine.executors.processes import Processes


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    pool = Processes(most=1)
    yield pool
    await pool.close()
