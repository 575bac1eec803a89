"""Upkeep of spread queues is many scripts; who is cut off at any of them keeps nobody waiting.

Another one does what is left at once, nothing is done twice, and no key is left to nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from tests.redis.keys import with_options
from tests.redis.server import new_url
from tests.stores.redis.calls import NONE_KEPT, opened, settlement, wanting
from tests.stores.redis.owners import strays
from windlass.core.failpoint import arm, disarm
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL, Retention
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job
from windlass.testing.failpoints import Fault

AT_ONCE: Final = 1.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
QUEUES: Final = ("a", "b", "c")
EACH: Final = 2
"""Jobs of each queue that there is something to do with."""
POINTS: Final = ("redis.before_script", "redis.after_script")


async def _promote(store: Store) -> int:
    return await store.promote(limit=100)


async def _prune(store: Store) -> int:
    return await store.prune(Retention(NONE_KEPT), limit=100)


async def _rescue(store: Store) -> int:
    return len(await store.rescue(RescueRequest(), KEEP_ALL))


UPKEEP: Final[Mapping[str, Callable[[Store], Awaitable[int]]]] = {
    "promote": _promote,
    "prune": _prune,
    "rescue": _rescue,
}
"""What any process may do for all of them; each returns of how many it took care."""


class Killed(BaseException):
    """Nobody catches it: whoever meets it does nothing any more."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", UPKEEP)
async def test_upkeep_that_is_cut_off_at_any_script_is_done_by_another_one_at_once(name: str, point: str) -> None:
    wanted = await left_when_cut_off(name, point, step=None)

    steps = 0
    while (left := await left_when_cut_off(name, point, step=steps + 1)) is not None:
        assert left == wanted, steps + 1
        steps += 1

    # the names of the queues, and a script for each of them
    assert steps >= 1 + len(QUEUES)


async def left_when_cut_off(name: str, point: str, *, step: int | None) -> object:
    """Return what there is when one was cut off and another one has followed; None where there is no such step."""
    with new_url() as plain:
        url = with_options(plain, "spread=queues")
        async with opened(url) as store:
            await something_due(store, name)
        if step is not None:
            async with opened(url) as store:
                with killed_at(point, step) as fault:
                    ends = await asyncio.gather(UPKEEP[name](store), return_exceptions=True)
            if not fault.fired:
                return None
            assert isinstance(ends[0], Killed)
        async with opened(url) as other:
            async with asyncio.timeout(AT_ONCE + SPARE):
                await UPKEEP[name](other)
            assert await UPKEEP[name](other) == 0
            stats = [replace(each, oldest_waiting=None) for each in await other.stats()]
        assert strays(url) == []
    return stats


@contextmanager
def killed_at(point: str, step: int) -> Generator[Fault]:
    """Let whoever comes to a point for this time be gone."""

    def kill() -> None:
        raise Killed

    fault = Fault(point, kill, lambda reached: reached == step)
    arm(point, fault)
    try:
        yield fault
    finally:
        disarm(point)


async def something_due(store: Store, name: str) -> None:
    """Leave something to be done in each queue."""
    for queue in QUEUES:
        if name == "promote":
            await store.enqueue([a_job(queue, delay=timedelta(microseconds=1)) for _ in range(EACH)])
            continue
        await store.enqueue([a_job(queue, max_attempts=1 + number) for number in range(EACH)])
        claims = (await store.claim(wanting(queue, limit=EACH, lease=timedelta(0)))).jobs
        if name == "prune":
            await store.settle([settlement(claim) for claim in claims])
