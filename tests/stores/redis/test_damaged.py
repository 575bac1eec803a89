"""What the log says of damaged records."""

import asyncio
import logging
from contextlib import closing
from datetime import timedelta
from typing import Final

import pytest

from tests.redis.asking import ask, connected
from tests.redis.keys import prefix_of, servers_of, with_options
from tests.stores.redis.calls import NOW, opened, wanting
from tests.stores.redis.damage import inflict
from windlass.core.errors import StoreCorrupt
from windlass.core.job import Enqueued, Failure
from windlass.core.requests import Changed, Rescued, RescueRequest, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.unique import Unique
from windlass.core.verdict import ToRetry
from windlass.testing.conformance.given import a_job


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


async def test_where_queues_are_spread_each_is_set_aside_once_too(url: str, caplog: pytest.LogCaptureFixture) -> None:
    url = with_options(url, "spread=queues")
    async with opened(url) as first, opened(url) as store:
        job = a_job("q")
        await first.enqueue([job])
        [server] = servers_of(url)
        ask(server, "HSET", f"{{{prefix_of(url)}|q}}|job|{job.id}", "head", "\x91")

        for queues in (["q"], ["q"], ["q", "r"], ["r", "q"]):
            assert (await store.claim(wanting(*queues))).jobs == []
        [stats] = await store.stats("q")

    assert [text.split(" ")[1] for text in errors(caplog)] == [job.id]
    assert (stats.pending, stats.dead) == (0, 1)


@pytest.mark.parametrize("way", ["alone", "batch", "keyed", "many callers"])
@pytest.mark.parametrize("what", ["key of another type", "head", "empty head", "short head", "more", "other more"])
async def test_under_the_id_of_a_damaged_job_nothing_is_enqueued(url: str, what: str, way: str) -> None:
    """Nobody can tell whether it would be a repeat."""
    async with opened(url) as store:
        job, beside = a_job("q"), a_job("q", unique=Unique("k") if way == "keyed" else None)
        await store.enqueue([job])
        inflict(url, job.id, what)

        calls = [[job]] if way == "alone" else [[beside], [job]] if way == "many callers" else [[beside, job]]
        *others, refused = await asyncio.gather(*map(store.enqueue, calls), return_exceptions=True)

        assert isinstance(refused, StoreCorrupt)
        assert refused.job_id == job.id
        assert others == [[Enqueued(beside.id, created=True)]] * len(others)
        assert await store.enqueue([beside]) == [Enqueued(beside.id, created=not others)]


async def test_a_claim_sets_many_damaged_jobs_aside_by_several_scripts(url: str) -> None:
    """The server answers others in between, however many are damaged."""
    async with opened(url) as store:
        jobs = [a_job("q") for _ in range(2_100)]
        await store.enqueue(jobs)
        await store.enqueue([sound := a_job("q")])
        [server] = servers_of(url)
        with closing(connected(server)) as client, client.pipeline(transaction=False) as pipeline:
            for job in jobs:
                pipeline.hset(f"{{{prefix_of(url)}}}|job|{job.id}", "body", "")
            pipeline.execute()
            client.config_resetstat()
            claims = (await store.claim(wanting("q"))).jobs
            scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]

        assert [claim.job.id for claim in claims] == [sound.id]
        assert scripts >= 3
        [stats] = await store.stats("q")
        assert (stats.pending, stats.running, stats.dead) == (0, 1, 2_100)


async def test_a_damaged_job_that_is_rescued_counts_as_rescued_and_as_dead(url: str) -> None:
    async with opened(url) as store:
        job = a_job("q", kind="mail")
        await store.enqueue([job])
        await store.claim(wanting("q", lease=timedelta(0)))
        inflict(url, job.id, "hold")
        before = await store.minutes(since=NOW - timedelta(hours=1), until=NOW + timedelta(days=9_999))

        assert await store.rescue(RescueRequest(), KEEP_ALL) == [Rescued(job.id, State.DEAD)]

        [stats] = await store.stats("q")
        assert (stats.totals.rescued, stats.totals.dead) == (1, 1)
        counts = await store.minutes(since=NOW - timedelta(hours=1), until=NOW + timedelta(days=9_999))
        assert {(each.queue, each.kind) for each in [*before, *counts]} == {("q", "mail")}


FIELDS: Final = {"hold": b"\x91", "head": b"\x91", "state": b"text", "run_at": b"text", "body": b"\x91"}


@pytest.mark.parametrize("field", FIELDS)
async def test_a_damaged_job_that_is_rescued_to_dead_has_a_delivery_as_any_other(url: str, field: str) -> None:
    async with opened(url) as store:
        damaged, sound = (a_job("q", max_attempts=1) for _ in range(2))
        await store.enqueue([damaged, sound])
        await store.claim(wanting("q", limit=2, lease=timedelta(0), worker="w:1"))
        [server] = servers_of(url)
        key = f"{{{prefix_of(url)}}}|job|{damaged.id}"
        before = ask(server, "HGET", key, field)
        ask(server, "HSET", key, field, FIELDS[field])

        await store.rescue(RescueRequest(), KEEP_ALL)

        [first, second] = await store.get([damaged.id, sound.id])
        assert first is not None
        assert second is not None
        assert [first.state, second.state] == [State.DEAD, State.DEAD]
        [delivery], [other] = first.history, second.history
        assert delivery == other
        assert delivery.worker == "w:1"

        if before is None:
            ask(server, "HDEL", key, field)
        elif field != "state":
            ask(server, "HSET", key, field, before)
        assert await store.retry([damaged.id, sound.id]) == [Changed.DONE, Changed.DONE]
        [first, second] = await store.get([damaged.id, sound.id])
        assert first is not None
        assert second is not None
        assert [each.retried_at for each in first.history] == [each.retried_at for each in second.history]
        assert first.history[0].retried_at is not None


async def test_a_damaged_job_whose_history_is_no_list_is_rescued_without_a_delivery(url: str) -> None:
    async with opened(url) as store:
        job = a_job("q", max_attempts=1)
        await store.enqueue([job])
        await store.claim(wanting("q", lease=timedelta(0)))
        [server] = servers_of(url)
        ask(server, "SET", f"{{{prefix_of(url)}}}|history|{job.id}", "text")

        assert await store.rescue(RescueRequest(), KEEP_ALL) == [Rescued(job.id, State.DEAD)]

        assert ask(server, "GET", f"{{{prefix_of(url)}}}|history|{job.id}") == "text"


@pytest.mark.parametrize("delivered", [0, 1])
async def test_a_job_that_a_claim_has_set_aside_tells_when_it_was_retried(url: str, delivered: int) -> None:
    """The client alone sees that a text is not UTF-8: the claim was made by then, and was never given."""
    async with opened(url) as store:
        job = a_job("q", max_attempts=9)
        await store.enqueue([job])
        for _ in range(delivered):
            [claim] = (await store.claim(wanting("q"))).jobs
            await store.settle([Settlement(job.id, claim.token, ToRetry(timedelta(0), Failure("no")))])
        [server] = servers_of(url)
        key = f"{{{prefix_of(url)}}}|job|{job.id}"
        ask(server, "HSET", key, "error", b"\xff")
        assert (await store.claim(wanting("q"))).jobs == []
        [dead] = await store.get([job.id])
        assert dead is not None
        assert (dead.state, dead.attempt, dead.delivery) == (State.DEAD, delivered, delivered)
        ask(server, "HDEL", key, "error")

        assert await store.retry([job.id]) == [Changed.DONE]

        [found] = await store.get([job.id])
        assert found is not None
        assert [each.retried_at is None for each in found.history] == [False]
