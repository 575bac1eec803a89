"""A URL that leads to another server than it says: told at once, and what to write."""

import time
from collections.abc import Iterator

import pytest

from tests.redis.cluster import new_cluster_url
from tests.redis.private import PrivateRedis
from tests.stores.redis.saying import NOTHING, a_server_that_says
from windlass import StoreUnavailable
from windlass.connect import open_store

QUICK = 15.0
PATIENT = "timeout=60"


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis() as private:
        yield private


async def refused(url: str, said: str) -> None:
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match=said) as told:
        await open_store(url).open()

    assert not told.value.retryable
    assert time.monotonic() - began < QUICK


async def test_a_database_that_the_server_does_not_have(private: PrivateRedis) -> None:
    url = f"redis://127.0.0.1:{private.port}/99?{PATIENT}"

    await refused(url, r"has no database of this number .*: name another at the end of the URL")


async def test_a_server_in_place_of_a_sentinel(private: PrivateRedis) -> None:
    url = f"redis+sentinel://127.0.0.1:{private.port}/jobs?{PATIENT}"

    await refused(url, r"is no Sentinel: name the Sentinels, .* or write redis:// for one server")


async def test_sentinels_that_want_a_password_of_their_own() -> None:
    with PrivateRedis(conf={"requirepass": "theirs"}) as sentinel:
        url = f"redis+sentinel://:ours@127.0.0.1:{sentinel.port}/jobs?{PATIENT}"

        await refused(url, r"refused user or password: check \?sentinel_user= and \?sentinel_password= of the URL")


async def test_a_node_of_a_cluster_in_place_of_a_server() -> None:
    with new_cluster_url() as url:
        hosts, _, options = url.removeprefix("redis+cluster://").partition("?")
        refusals = [await refusal(f"redis://{host}?{options}&{PATIENT}") for host in hosts.split(",")]

    told = [(str(error), error.retryable) for error in refusals if error is not None]
    # the one that has the keys does as it is asked
    assert len(told) == len(refusals) - 1
    assert all("a node of a Cluster: write redis+cluster:// in place of redis://" in said for said, _ in told)
    assert not any(retryable for _, retryable in told)


async def refusal(url: str) -> StoreUnavailable | None:
    store = open_store(url)
    try:
        await store.open()
    except StoreUnavailable as error:
        return error
    await store.close()
    return None


async def test_what_is_no_redis() -> None:
    async with a_server_that_says({b"CLIENT": b"HTTP/1.1 400 Bad Request\r\n", b"EVALSHA": NOTHING}) as url:
        await refused(url, r"is no Redis \(.*H.*\): check host, port and TLS of the URL")
