"""A change of all jobs that match a filter, over the API."""

from collections.abc import Sequence

import pytest

from tests.client.given_dead import died
from tests.http.given_app import GivenApp, an_app
from windlass.api.roles import Role
from windlass.client.operations import CHUNK
from windlass.core.errors import StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.looks import AuditEntry
from windlass.core.requests import Changed
from windlass.core.unique import Unique

DEAD = {"filter": {"state": "dead", "error_type": "Boom"}}
BOOMS = [f"Boom: {n}" for n in range(CHUNK + 2)]


async def test_a_change_of_many_is_written_down_when_it_goes_on_and_when_it_ends() -> None:
    async with an_app() as given:
        await died(given.client, [*BOOMS, "Other: 1"])

        told = await given.done("/jobs/delete", DEAD, who=Role.OPERATE)
        ended, began = await _audit(given)

    assert told == {"count": CHUNK + 2}
    assert (began.target, began.detail["goes_on"]) == (f"{CHUNK:,} jobs", "yes")
    assert (ended.actor, ended.action, ended.target) == ("operate", "delete", f"{CHUNK + 2:,} jobs")
    assert ended.detail == {"count": str(CHUNK + 2), "state": "dead", "error_type": "Boom"}


async def test_an_error_in_the_middle_leaves_the_rest_and_tells_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        await died(given.client, BOOMS)
        retry, calls = given.client.store.retry, 0

        async def fail_at_the_second(ids: Sequence[JobId]) -> list[Changed]:
            nonlocal calls
            calls += 1
            if calls == 1:
                return await retry(ids)
            raise StoreUnavailable("the database is gone: look after it", retryable=True)

        monkeypatch.setattr(given.client.store, "retry", fail_at_the_second)
        reply = await given.post("/jobs/retry", DEAD)
        entries = await _audit(given)
        left = await given.client.stats()

    assert (reply.status, reply.error) == (503, "store_unavailable")
    assert [(each.target, each.detail.get("interrupted")) for each in entries] == [
        ("1,000 jobs", "yes"),
        ("1,000 jobs", None),
    ]
    assert (left.dead, left.pending) == (2, CHUNK)


@pytest.mark.slow
async def test_a_process_that_stops_ends_between_two_chunks_and_says_how_far_it_came() -> None:
    async with an_app() as given:
        await died(given.client, BOOMS)
        given.api.stop_waiting()

        reply = await given.post("/jobs/retry", DEAD)
        [entry] = await _audit(given)
        left = await given.client.stats()

    assert reply.status == 503
    assert reply.document["facts"]["count"] == CHUNK
    assert "1,000 jobs changed, the rest is as it was" in reply.document["message"]
    assert (entry.detail["count"], entry.detail["interrupted"]) == ("1000", "yes")
    assert left.dead == 2


async def test_jobs_whose_unique_key_is_held_are_left_out_and_counted() -> None:
    async with an_app() as given:
        key = Unique("one", until="finished")
        await given.client.enqueue("q", unique=key)
        [claim] = await given.client.claim_many(["q"], limit=1, lease=60)
        await given.client.dead_letter(claim, "Boom: 0")
        await given.client.enqueue("q", unique=key)

        held = await given.done("/jobs/retry", DEAD)
        nothing_done = await _audit(given)
        await died(given.client, ["Boom: 1"], queue="other")
        both = await given.done("/jobs/retry", DEAD)
        [entry] = await _audit(given)

    assert (held, nothing_done) == ({"count": 0, "left": 1}, [])
    assert both == {"count": 1, "left": 1}
    assert (entry.target, entry.detail["key_held"]) == ("1 job", "1")


async def _audit(given: GivenApp) -> list[AuditEntry]:
    return list(await given.client.store.audit(limit=10))
