"""Values at the edges of what the store takes: large, long, early, late, and text that Postgres does not hold."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.stores.postgres.racing import opened, settlement, wanting
from windlass.core.errors import StoreUnavailable
from windlass.core.job import Enqueued, Failure, Note, Progress
from windlass.core.looks import AuditEntry
from windlass.core.requests import RescueRequest, Settled
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToRetry, ToSnoozed, Verdict
from windlass.testing.conformance.given import a_job

ODD = "nul \0, half a pair \ud800, end"


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


async def test_a_hundred_mebibytes_go_in_one_batch_and_come_out_again(store: Store) -> None:
    jobs = [a_job("q", payload=bytes([at]) * 1024 * 1024) for at in range(100)]

    made = await store.enqueue(jobs)

    assert all(one.created for one in made)
    given: dict[str, bytes] = {}
    while claims := (await store.claim(wanting(limit=20))).jobs:
        given |= {claim.job.id: claim.job.payload for claim in claims}
    assert given == {job.id: job.payload for job in jobs}


@pytest.mark.parametrize("request_id", [None, "r"])
async def test_ten_thousand_jobs_go_in_one_batch_in_their_order(store: Store, request_id: str | None) -> None:
    jobs = [a_job("q") for _ in range(10_000)]

    made = await store.enqueue([*jobs, jobs[0]], request_id=request_id)

    assert [one.created for one in made] == [True] * 10_000 + [False]
    claims = (await store.claim(wanting(limit=10_000))).jobs
    assert [claim.job.id for claim in claims] == [job.id for job in jobs]
    assert await store.settle([settlement(claim) for claim in claims]) == [Settled.DONE] * 10_000


async def test_the_longest_names_are_taken_everywhere(store: Store) -> None:
    name = "n" * 200
    job = a_job(name, kind=name, unique=Unique(name, until="finished", on_conflict="raise"))._replace(
        tenant=name, limit_key=name, schedule_id=name
    )
    await store.enqueue([job])
    [claim] = (await store.claim(wanting(name, worker=name, kinds=[name]))).jobs
    await store.note([Note(claim.job.id, claim.token, lines=[("info", name)])])
    await store.set_paused(name, paused=True)

    assert await store.paused([name]) == [name]
    assert await store.settle([settlement(claim, ToRetry(timedelta(0), Failure(name)))]) == [Settled.DONE]
    assert await store.kinds(name) == [name]
    [stats] = await store.stats(name)
    assert (stats.pending, stats.paused) == (1, True)


async def test_errors_with_text_that_postgres_does_not_hold_are_kept_without_it(store: Store) -> None:
    await store.enqueue([a_job("q") for _ in range(3)])
    claims = (await store.claim(wanting(limit=3))).jobs
    failure = Failure(ODD, ODD, ODD)
    await store.note([Note(claims[0].job.id, claims[0].token, lines=[("info", ODD)], progress=Progress(1, 2, ODD))])
    verdicts: list[Verdict] = [ToRetry(timedelta(0), failure), ToDead(failure), ToCancelled(ODD)]

    answers = await store.settle([settlement(claim, verdict) for claim, verdict in zip(claims, verdicts, strict=True)])
    await store.write_audit([AuditEntry(datetime.now(UTC), ODD, ODD, ODD, {ODD: ODD})])

    assert answers == [Settled.DONE] * 3
    for job in await store.get([claim.job.id for claim in claims]):
        assert job is not None
        assert "half a pair" in str(job.last_error)


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)])
async def test_the_first_and_the_last_moment_are_times_like_any_other(store: Store, at: datetime) -> None:
    await store.enqueue([job := a_job("q", run_at=at)])

    [kept] = await store.get([job.id])
    due = await store.due_in(["q"])
    claims = (await store.claim(wanting())).jobs

    assert kept is not None
    past = at.year == 1
    assert bool(claims) is past
    assert kept.run_at.tzinfo is not None
    assert (due is None) is past
    if not past:
        assert kept.run_at == at
        assert await store.reschedule([job.id], at)
        assert await store.reschedule([job.id], datetime(1, 1, 1, tzinfo=UTC))
        [claim] = (await store.claim(wanting())).jobs
        assert await store.settle([settlement(claim, ToSnoozed(timedelta(days=3_000_000)))]) == [Settled.DONE]


async def test_a_lease_of_ages_and_one_of_no_time_are_leases_like_any_other(store: Store) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    [long] = (await store.claim(wanting(lease=timedelta(days=3_000_000)))).jobs
    [short] = (await store.claim(wanting(lease=timedelta(0)))).jobs

    rescued = await store.rescue(RescueRequest(), Retention())

    assert [one.id for one in rescued] == [short.job.id]
    renewed = await store.renew([(long.job.id, long.token)], timedelta(days=3_000_000))
    assert renewed[0] is not None
    assert renewed[0].lease_expires_at.year == 9999


@pytest.mark.parametrize(
    "bad", [{"kind": "a\0b"}, {"tenant": "a\0b"}, {"headers": {"a": "\ud800"}}, {"codec": "\ud800"}]
)
async def test_what_one_caller_brings_that_cannot_be_kept_is_not_the_others_loss(
    store: Store, bad: dict[str, Any]
) -> None:
    good = a_job("q")

    answers = await asyncio.gather(
        store.enqueue([a_job("q")._replace(**bad)]), store.enqueue([good]), return_exceptions=True
    )

    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1] == [Enqueued(good.id, created=True)]
