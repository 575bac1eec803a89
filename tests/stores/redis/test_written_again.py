"""A call with nothing to change writes all the same: whoever waits for replicas waits for the write before it too."""

from collections.abc import Iterator

import pytest

from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import opened
from windlass.stores.redis.keys import prefix_of
from windlass.stores.redis.options import PREFIX
from windlass.stores.redis.requests import Ask
from windlass.stores.redis.runner import Runner


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    with PrivateRedis() as redis:
        yield redis


def changes(redis: PrivateRedis) -> int:
    """Return how many writes there were."""
    return int(redis.ask("INFO", "persistence")["rdb_changes_since_last_save"])


@pytest.mark.parametrize(
    "name, ask",
    [
        ("keep_schedule", {"id": "nightly", "queue": "q"}),
        ("forget_schedule", {"id": "nightly", "queue": "q"}),
        ("know_queue", {"queue": "q", "most": 1024, "sure": True}),
    ],
)
async def test_a_repetition_is_a_write(redis: PrivateRedis, name: str, ask: Ask) -> None:
    async with opened(redis.url) as store:
        runner: Runner = vars(store)["_room"].runner
        first = await runner.run(prefix_of(PREFIX), name, ask)
        before = changes(redis)

        assert await runner.run(prefix_of(PREFIX), name, ask) == first

        assert changes(redis) > before


@pytest.mark.parametrize("paused", [True, False])
async def test_a_repeated_pause_is_a_write(redis: PrivateRedis, *, paused: bool) -> None:
    async with opened(redis.url) as store:
        await store.set_paused("q", paused=paused)
        before = changes(redis)

        await store.set_paused("q", paused=paused)

        assert changes(redis) > before
