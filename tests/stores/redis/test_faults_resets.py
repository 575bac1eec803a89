"""A network that cuts connections again and again, at any byte: consumption goes on, nothing is done twice."""

from tests.redis.keys import with_options
from tests.redis.proxy import Proxy
from tests.servers.resets import check_that_consumption_goes_on, check_that_nothing_is_lost_or_doubled


async def test_consumption_goes_on_through_two_hundred_resets_at_random_bytes(url: str) -> None:
    async with Proxy(url) as proxy:
        await check_that_consumption_goes_on(proxy, with_options(proxy.url, "timeout=20"), url)


async def test_many_producers_and_consumers_lose_and_double_nothing_while_all_is_reset(url: str) -> None:
    async with Proxy(url) as proxy:
        await check_that_nothing_is_lost_or_doubled(proxy, with_options(proxy.url, "timeout=20"), url)
