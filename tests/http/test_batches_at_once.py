"""Batches that come in one call reach the store together, so that it can put them into one commit."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.http.given_app import an_app
from windlass.core.job import Enqueued, PreparedJob
from windlass.testing.conformance.fixtures import soon


async def test_all_batches_of_a_call_are_given_to_the_store_before_any_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        store = given.client.store
        enqueue, asked, all_here = store.enqueue, list[str](), asyncio.Event()

        async def late(jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
            asked.append(jobs[0].queue)
            if len(asked) == 3:
                all_here.set()
            await all_here.wait()
            return await enqueue(jobs, request_id=request_id)

        monkeypatch.setattr(store, "enqueue", late)

        batches = [[{"queue": queue}] for queue in ("a", "b", "c")]
        told = await soon(given.done("/jobs/batches", {"batches": batches}, request="1"))

        assert asked == ["a", "b", "c"]
        jobs = [await given.client.get(each["jobs"][0]["id"]) for each in told["batches"]]
        assert [job and job.queue for job in jobs] == ["a", "b", "c"]
