"""A network that cuts connections again and again, at any byte: consumption goes on, nothing is done twice."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from tests.servers.resets import check_that_consumption_goes_on, check_that_nothing_is_lost_or_doubled

LONGEST: Final = 4_000
"""Bytes: a greeting has some hundred, a statement that is new to a connection some thousand."""
ANSWERS: Final = 30
"""Each connection that is opened takes some of them."""


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


async def test_consumption_goes_on_through_two_hundred_resets_at_random_bytes(url: str) -> None:
    async with Proxy(url) as proxy:
        await check_that_consumption_goes_on(proxy, f"{proxy.url}&timeout=20", url, longest=LONGEST)


async def test_many_producers_and_consumers_lose_and_double_nothing_while_all_is_reset(url: str) -> None:
    async with Proxy(url) as proxy:
        await check_that_nothing_is_lost_or_doubled(proxy, f"{proxy.url}&timeout=20", url, answers=ANSWERS)
