"""A server for each test that answers as it is told."""

from collections.abc import AsyncIterator

import pytest

from tests.stores.http.scripted import Scripted


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as server:
        yield server
