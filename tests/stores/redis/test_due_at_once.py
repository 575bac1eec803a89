"""A hundred thousand jobs that come due at the same moment."""

from typing import Final

import pytest

from windlass.connect import open_store
from windlass.core.ids import JobId
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import SECOND, a_job, wanting

JOBS: Final = 100_000
PAGE: Final = 1_000


@pytest.mark.on_request
async def test_a_hundred_thousand_that_come_due_at_once_are_each_given_once(url: str) -> None:
    clock = FakeClock()
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    for _ in range(JOBS // PAGE):
        await store.enqueue([a_job(delay=SECOND) for _ in range(PAGE)])
    clock.advance(SECOND)

    given: list[JobId] = []
    while claims := (await store.claim(wanting(limit=PAGE))).jobs:
        given += [claim.job.id for claim in claims]

    [row] = await store.stats()
    await store.close()
    assert (len(given), len(set(given))) == (JOBS, JOBS)
    assert (row.running, row.scheduled, row.pending) == (JOBS, 0, 0)
