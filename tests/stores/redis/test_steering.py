"""Jobs that are steered beside a damaged one: the others are, and whoever asked for it by its id is told."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, remove_keys, servers_of
from tests.stores.redis.calls import LATER, MINUTE, NONE_KEPT, settlement, wanting
from tests.stores.redis.damage import inflict
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Failure
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.retention import KEEP_ALL, Retention
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.testing.conformance.given import a_job

WAYS: Final = ["key of another type", "head", "short head", "claim", "hold"]


async def waiting(store: Store) -> list[JobId]:
    """Enqueue jobs of which the one in the middle has a unique key."""
    jobs = [a_job("q"), a_job("q", delay=MINUTE), a_job("q", unique=Unique("k", until="finished")), a_job("q")]
    await store.enqueue(jobs)
    return [job.id for job in jobs]


async def cancelled(store: Store) -> list[JobId]:
    ids = await waiting(store)
    await store.cancel(ids, KEEP_ALL)
    return ids


Steer = Callable[[Store, list[JobId]], Awaitable[list[Any]]]
CALLS: Final[dict[str, tuple[Callable[[Store], Awaitable[list[JobId]]], Steer, object]]] = {
    "cancel": (waiting, lambda store, ids: store.cancel(ids, KEEP_ALL), CancelOutcome.REMOVED),
    "cancel and forget": (waiting, lambda store, ids: store.cancel(ids, Retention(NONE_KEPT)), CancelOutcome.REMOVED),
    "reschedule": (waiting, lambda store, ids: store.reschedule(ids, LATER), Changed.DONE),
    "retry": (cancelled, lambda store, ids: store.retry(ids), Changed.DONE),
    "delete": (cancelled, lambda store, ids: store.delete(ids), Changed.DONE),
}
CASES: Final = [(call, what) for call in CALLS for what in WAYS]


def numbers(url: str) -> list[int]:
    """Return how many stand in each line."""
    [server] = servers_of(url)
    lines = ["ready|q|", "due|q", "leased|q", "jobs|q", "ended|q|cancelled"]
    return [ask(server, "ZCARD", f"{{{prefix_of(url)}}}|{line}") for line in lines]


@pytest.mark.parametrize("call, what", CASES)
async def test_other_jobs_are_steered_beside_a_damaged_one(url: str, store: Store, call: str, what: str) -> None:
    prepare, steer, done = CALLS[call]
    alone = await prepare(store)
    assert await steer(store, [alone[0], alone[1], alone[3]]) == [done] * 3
    before = numbers(url)
    remove_keys(url)
    ids = await prepare(store)
    inflict(url, ids[2], what)

    if call == "delete":
        # it stands in the line of an end, and that is all that is needed
        assert await steer(store, ids) == [done] * 4
        assert numbers(url) == [0] * 5
        return
    with pytest.raises(StoreCorrupt, match="what the call did to other jobs is done") as told:
        await steer(store, ids)

    assert told.value.job_id == ids[2]
    assert numbers(url) == before


async def test_others_are_let_go_beside_a_damaged_job(url: str, store: Store) -> None:
    ids = await waiting(store)
    inflict(url, ids[1], "head")

    with pytest.raises(StoreCorrupt) as told:
        await store.let_go(jobs=ids)

    assert told.value.job_id == ids[1]
    assert numbers(url) == [0, 1, 0, 1, 0]


async def test_a_prune_deletes_damaged_jobs_as_others(url: str, store: Store) -> None:
    jobs = [a_job("q") for _ in range(6)] + [a_job("r") for _ in range(2)]
    await store.enqueue(jobs)
    for claim in (await store.claim(wanting("q", "r", limit=8))).jobs:
        # each ends at a time of its own
        await store.settle([settlement(claim, keep=True)])
    for at, what in ((0, "key of another type"), (1, "head"), (3, "short head")):
        inflict(url, jobs[at].id, what)

    by_number = [await store.prune(Retention(most=1), limit=limit) for limit in (1, 10, 10)]
    newest = await store.get([jobs[5].id, jobs[7].id])
    by_time = [await store.prune(Retention(NONE_KEPT), limit=limit) for limit in (1, 10, 10)]

    assert (by_number, None in newest, by_time) == ([1, 5, 0], False, [1, 1, 0])
    assert [key for key in keys_of(url) if "job|" in key or "|ended|" in key] == []


async def test_a_history_is_as_long_as_the_release_before_reads_it(store: Store, url: str) -> None:
    job = a_job("q", max_attempts=1)
    await store.enqueue([job])
    [claim] = (await store.claim(wanting("q"))).jobs
    await store.settle([settlement(claim, ToDead(Failure("no", "Refused", None, "shop")))])
    await store.retry([job.id])

    [server] = servers_of(url)
    [kept] = ask(server, "LRANGE", f"{{{prefix_of(url)}}}|history|{job.id}", 0, -1)
    *_, outcome, failure = msgspec.msgpack.decode(kept.encode(errors="surrogateescape"))
    assert (outcome, failure) == ("failed", ["no", "Refused", None])


DETAILS: Final = ["", "91", "01", "a178", "810102", "9101", "9193a1780101", "919301a17801", "91930101a178"]


@pytest.mark.parametrize("damage", DETAILS)
async def test_details_that_cannot_be_read_are_in_the_way_of_nothing(store: Store, url: str, damage: str) -> None:
    job = a_job("q", max_attempts=1)
    await store.enqueue([job])
    [claim] = (await store.claim(wanting("q"))).jobs
    [server] = servers_of(url)
    ask(server, "HSET", f"{{{prefix_of(url)}}}|job|{job.id}", "details", bytes.fromhex(damage))

    [before] = await store.get([job.id])
    await store.settle([settlement(claim, ToDead(Failure("no", "Refused", None, "shop")))])
    await store.retry([job.id])
    [after] = await store.get([job.id])

    assert before is not None
    assert after is not None
    [delivery] = after.history
    assert delivery.failure == Failure("no", "Refused", None, "shop")
    assert delivery.retried_at is not None
