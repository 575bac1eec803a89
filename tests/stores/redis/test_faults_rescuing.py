"""What goes wrong in the middle of a rescue: a server goes on with it by itself, and orphans are found."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import pytest

import windlass
from tests.redis.frames import Request
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import DURABLE, PrivateRedis
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import opened, wanting
from windlass import App, Server, ServerConfig
from windlass.core.duration import ZERO
from windlass.core.ids import JobId
from windlass.stores.redis import away
from windlass.stores.redis.scripts import script
from windlass.testing.conformance.given import a_job

PATIENCE: Final = 60.0
QUEUES: Final = ("a", "b", "c")
INTERVAL: Final = 0.1
MANY: Final = 1_000
SHORTLY: Final = 0.2
"""Seconds after which a queue that was given up is tried again."""
SHORT: Final = "timeout=0.5"
OOM: Final = "OOM command not allowed when used memory > 'maxmemory'."
ERRORS: Final = (
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "READONLY You can't write against a read only replica.",
    OOM,
    "MISCONF Errors writing to the AOF file: No space left on device",
)


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis(conf=DURABLE) as private:
        yield private


@asynccontextmanager
async def served(url: str) -> AsyncGenerator[None]:
    """Run a server that rescues all the time, and works none of the queues that there are orphans in."""
    async with App(url) as app, Server(app, ServerConfig(queues=["other"], rescue_interval=INTERVAL)):
        yield


def refuse_rescues(proxy: Proxy, error: str) -> list[asyncio.Event]:
    """Refuse every rescue until `proxy.plans` are cleared."""
    return [proxy.fail(rescues(), error) for _ in range(MANY)]


def rescues(nth: int = 1, then: Callable[[], None] = lambda: None) -> Callable[[Request], bool]:
    """Be true of the `nth` rescue that is asked for, and do something first."""
    digest, seen = script("rescue").digest.encode(), count(1)

    def meets(request: Request) -> bool:
        if digest not in request.words or next(seen) != nth:
            return False
        then()
        return True

    return meets


async def orphans(url: str) -> list[JobId]:
    """Leave a claim in each queue whose holder is gone."""
    async with opened(url) as store:
        for queue in QUEUES:
            await store.enqueue([a_job(queue)])
        return [((await store.claim(wanting(queue, lease=ZERO))).jobs)[0].job.id for queue in QUEUES]


async def assert_rescued_once(url: str, ids: list[JobId]) -> None:
    """Wait until each of these jobs is there again."""
    async with windlass.connect(url) as client:
        claims = [await client.claim(queue, wait=PATIENCE) for queue in QUEUES]
        assert [(claim.job.id, claim.delivery) for claim in claims if claim] == [(each, 2) for each in ids]
        assert (await client.stats()).totals.rescued == len(ids)


@pytest.mark.parametrize("spread, scripts", [("", 1), ("&spread=queues", len(QUEUES))], ids=["one tag", "spread"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.split()[0])
async def test_a_server_whose_rescue_is_refused_again_and_again_rescues_when_it_is_not(
    url: str, proxy: Proxy, spread: str, scripts: int, error: str
) -> None:
    async with asyncio.timeout(PATIENCE), served(f"{proxy.url}{spread}"):
        refusals = refuse_rescues(proxy, error)
        ids = await orphans(f"{url}{spread}")
        so_far = sum(event.is_set() for event in refusals)
        # of two rounds, so that in one of them there was nothing that went well
        await refusals[so_far + 2 * scripts].wait()

        proxy.plans.clear()

        await assert_rescued_once(f"{url}{spread}", ids)


@pytest.mark.parametrize("nth", range(1, len(QUEUES) + 1))
async def test_a_server_whose_store_is_killed_in_the_middle_of_a_rescue_rescues_the_rest_when_it_is_back(
    private: PrivateRedis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    monkeypatch.setattr(away, "AWAY_FOR", SHORTLY)
    url = with_options(private.url, f"prefix={new_prefix()}&spread=queues")
    async with Proxy(url) as proxy, asyncio.timeout(PATIENCE), served(with_options(proxy.url, SHORT)):
        refuse_rescues(proxy, OOM)
        ids = await orphans(url)
        proxy.plans.clear()

        await proxy.drop_request(rescues(nth, private.kill)).wait()
        failures = caplog.text.count("rescuer failed")
        while caplog.text.count("rescuer failed") == failures:  # noqa: ASYNC110 - nobody else is told
            await asyncio.sleep(0.005)
        await asyncio.to_thread(private.start)

        await assert_rescued_once(url, ids)
