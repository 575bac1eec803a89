"""A store of its own for each test, under a prefix; a proxy before its server."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis.proxy import Proxy
from tests.redis.server import new_url
from tests.stores.redis.calls import opened
from windlass.core.store import Store


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as url:
        yield url


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy
        proxy.release()


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """One that nothing happens to."""
    async with opened(url) as store:
        yield store
