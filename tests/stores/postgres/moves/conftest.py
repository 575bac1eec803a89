"""A database for each test, and moves on it."""

from collections.abc import AsyncIterator

import pytest

from tests.postgres.ready import ready_schema
from tests.stores.postgres.moves.moving import Mover


@pytest.fixture
async def mover() -> AsyncIterator[Mover]:
    with ready_schema() as url:
        mover = Mover(url)
        yield mover
        await mover.connections.close()
