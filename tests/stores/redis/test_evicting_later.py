"""A server that forgets jobs when its memory is full only since it was started again."""

import logging

import pytest

from tests.redis.keys import with_options
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import opened, wanting
from windlass.core.errors import StoreUnavailable
from windlass.testing.conformance.given import a_job

POLICY = "maxmemory-policy"


async def test_a_server_that_comes_back_and_would_forget_jobs_is_refused_until_it_is_mended() -> None:
    with PrivateRedis(conf={POLICY: "noeviction", "appendonly": "yes"}) as redis:
        async with opened(redis.url) as store:
            await store.enqueue([a_job("q")])
            redis.conf[POLICY] = "allkeys-lru"
            redis.restart()

            # a look first: a call that was sent to the server that is gone may have been done
            for call in (store.stats(), store.enqueue([a_job("q")]), store.claim(wanting("q"))):
                with pytest.raises(StoreUnavailable, match="maxmemory-policy allkeys-lru") as refused:
                    await call
                assert not refused.value.retryable

            redis.ask("CONFIG", "SET", POLICY, "noeviction")
            await store.enqueue([a_job("q")])
            [stats] = await store.stats()
            assert stats.pending == 2


async def test_whoever_insists_is_warned_of_a_server_that_comes_back_and_would_forget_jobs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with PrivateRedis(conf={POLICY: "noeviction", "appendonly": "yes"}) as redis:
        async with opened(with_options(redis.url, "evicting=allowed")) as store:
            redis.conf[POLICY] = "volatile-lru"
            redis.restart()
            caplog.clear()

            await store.enqueue([a_job("q")])

    [said] = [record for record in caplog.records if POLICY in record.getMessage()]
    assert (said.name, said.levelno) == ("windlass.durability", logging.WARNING)
