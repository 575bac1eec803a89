"""A network that says nothing any more: what gathers behind calls that are not answered ends in time too."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.stores.http.served import Bench, benched
from windlass import OutcomeUnknown, StoreUnavailable
from windlass.core.requests import ClaimRequest, Settled
from windlass.stores.http import batches
from windlass.testing.conformance.given import a_job, settlement

DEADLINE: Final = 1.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
OPTIONS: Final = f"timeout={DEADLINE}"
LEASE: Final = timedelta(minutes=10)


async def test_enqueues_that_wait_behind_many_others_end_in_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_TOGETHER", 10)
    async with benched(options=OPTIONS) as bench:
        await bench.through.enqueue([a_job("q")])

        ends = await ends_in_vain(bench, [bench.through.enqueue([a_job("q")]) for _ in range(100)])

        assert (_unsent(ends), sum(isinstance(end, OutcomeUnknown) for end in ends)) == (90, 10)
        await bench.through.enqueue([a_job("q")])


async def test_settlements_that_wait_behind_many_others_end_in_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_TOGETHER", 10)
    async with benched(options=OPTIONS) as bench:
        await bench.through.enqueue([a_job("q") for _ in range(100)])
        claims = (await bench.through.claim(ClaimRequest(["q"], 100, LEASE))).jobs

        ends = await ends_in_vain(bench, [bench.through.settle([settlement(claim)]) for claim in claims])

        assert (_unsent(ends), sum(isinstance(end, OutcomeUnknown) for end in ends)) == (90, 10)
        again = await bench.through.settle([settlement(claim) for claim in claims])
        assert again.count(Settled.DONE) >= 90
        assert Settled.LOST not in again


async def ends_in_vain(bench: Bench, calls: Sequence[Awaitable[Any]]) -> Sequence[object]:
    """Return how calls end that nobody answers, which they have to do in time."""
    bench.proxy.hold()
    began = time.monotonic()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert time.monotonic() - began < DEADLINE + SPARE
    bench.proxy.release()
    return ends


def _unsent(ends: Sequence[object]) -> int:
    """Return how many were told that nothing of their call was done, and that it can be made again."""
    told = [end for end in ends if isinstance(end, StoreUnavailable) and end.retryable]
    return sum("it was not sent, and nothing was done" in str(end) for end in told)
