"""Calls that bring much: what the serving side takes at once is made of as many as fit."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from tests.stores.http.served import benched
from windlass import StoreUnavailable
from windlass.core.job import PreparedJob
from windlass.testing.conformance.given import a_job

KIB: Final = 1024
MANY: Final = 100
"""With so much in each these are more than one request may be."""


def with_values(number: int) -> PreparedJob:
    return a_job("q", kv={b"k%d" % number: b"." * 200 * KIB})


def with_headers(_: int) -> PreparedJob:
    return a_job("q")._replace(headers={f"h{at}": "." * 8 * KIB for at in range(25)})


@pytest.mark.parametrize("each", [with_values, with_headers])
async def test_enqueues_that_bring_much_along_go_out_in_requests_that_are_taken(
    each: Callable[[int], PreparedJob],
) -> None:
    async with benched() as bench:
        enqueues = [bench.direct.enqueue([each(number)]) for number in range(MANY)]

        done = await asyncio.gather(*enqueues)

        assert all(one.created for [one] in done)


async def test_one_enqueue_that_brings_too_many_values_fails_none_beside_it() -> None:
    jobs = [a_job("q") for _ in range(20)]
    jobs[10] = a_job("q", kv={b"k%d" % number: b"." * 200 * KIB for number in range(MANY)})
    async with benched() as bench:
        ends = await asyncio.gather(*(bench.direct.enqueue([job]) for job in jobs), return_exceptions=True)

    assert [at for at, end in enumerate(ends) if isinstance(end, StoreUnavailable)] == [10]
