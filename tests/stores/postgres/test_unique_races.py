"""Unique keys under contention: one job always, and nobody waits for longer than the key needs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest

from tests.stores.postgres.racing import MINUTE, connection_to, opened
from windlass.borrow import borrow
from windlass.core.errors import StoreUnavailable, UniqueConflict
from windlass.core.job import Enqueued, Failure, PreparedJob
from windlass.core.requests import CancelOutcome, ClaimRequest, RescueRequest, Settled, Settlement
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToSucceeded, Verdict
from windlass.stores.postgres import runner
from windlass.testing.conformance.given import a_job

SOON: Final = 5.0
"""Seconds within which whatever waits for nobody is done, however slow the machine is."""


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
def no_deadlocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a deadlock be an error, in place of a second's pause before the next try."""
    monkeypatch.setattr(runner, "_MOST_TRANSIENT", 0)


def keyed(key: str = "k", payload: bytes = b"", **options: Any) -> PreparedJob:  # noqa: ANN401
    return a_job("q", payload=payload, unique=Unique(key, **options))


async def waiting_for_locks(connection: "asyncpg.Connection[Any]") -> None:
    """Return when a session of this database waits for another one's transaction."""
    async with asyncio.timeout(20):
        while not await connection.fetchval(_WAITING):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.005)


_WAITING: Final = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


@pytest.mark.parametrize("until", ["claimed", "finished"])
async def test_a_hit_that_waited_in_a_long_transaction_blocks_neither_the_claim_nor_the_ack(
    schema: str,
    store: Store,
    until: Any,  # noqa: ANN401
) -> None:
    async with connection_to(schema) as first, connection_to(schema) as second, connection_to(schema) as watcher:
        await first.execute("begin")
        await second.execute("begin")
        [won] = await store.join(borrow(first)).enqueue([keyed(until=until)])
        hit = asyncio.ensure_future(store.join(borrow(second)).enqueue([keyed(until=until)]))
        await waiting_for_locks(watcher)
        await first.execute("commit")

        assert await hit == [Enqueued(won.id, created=False)]
        # the second transaction is still open
        async with asyncio.timeout(SOON):
            [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
            answer = await store.settle([Settlement(claim.job.id, claim.token, ToSucceeded())])
            again = await store.enqueue([keyed(until=until)])
        await second.execute("rollback")

    assert answer == [Settled.DONE]
    assert again[0].created


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_two_transactions_that_bring_the_same_id_at_once_make_one_job(
    schema: str, store: Store, end: str
) -> None:
    job = a_job("q")
    async with connection_to(schema) as first, connection_to(schema) as watcher:
        await first.execute("begin")
        await store.join(borrow(first)).enqueue([job])
        second = asyncio.ensure_future(store.enqueue([job]))
        await waiting_for_locks(watcher)
        await first.execute(end)

        assert await second == [Enqueued(job.id, created=end == "rollback")]

    [stats] = await store.stats("q")
    assert (stats.pending, stats.totals.enqueued) == (1, 1)


async def test_whoever_waited_for_a_key_gets_it_when_the_first_rolls_back(schema: str, store: Store) -> None:
    async with connection_to(schema) as first, connection_to(schema) as watcher:
        await first.execute("begin")
        await store.join(borrow(first)).enqueue([keyed()])
        mine = asyncio.ensure_future(store.enqueue([job := keyed()]))
        await waiting_for_locks(watcher)
        await first.execute("rollback")

        assert await mine == [Enqueued(job.id, created=True)]


async def test_whoever_waited_for_one_key_sees_who_holds_the_others_at_that_moment(schema: str, store: Store) -> None:
    [parent] = await store.enqueue([keyed("one", until="finished")])
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
    follower, batch = keyed("two"), [keyed("one"), keyed("two")]
    async with connection_to(schema) as first, connection_to(schema) as watcher:
        await first.execute("begin")
        ended = Settlement(parent.id, claim.token, ToSucceeded(), then=[follower])
        assert await store.join(borrow(first)).settle([ended]) == [Settled.DONE]
        mine = asyncio.ensure_future(store.enqueue(batch))
        await waiting_for_locks(watcher)
        await first.execute("commit")

        assert await mine == [Enqueued(batch[0].id, created=True), Enqueued(follower.id, created=False)]


async def test_waiting_for_a_key_ends_at_the_deadline_and_says_why(schema: str, store: Store) -> None:
    async with connection_to(schema) as first, opened(f"{schema}&timeout=1") as hasty:
        await first.execute("begin")
        await store.join(borrow(first)).enqueue([keyed()])

        with pytest.raises(StoreUnavailable, match="holds a row or a key") as refused:
            await hasty.enqueue([keyed()])
        plain = await hasty.enqueue([a_job("q")])
        await first.execute("rollback")

    assert refused.value.retryable
    assert plain[0].created


@pytest.mark.usefixtures("no_deadlocks")
async def test_two_stores_that_race_for_keys_make_one_job_of_each(schema: str, store: Store) -> None:
    async with opened(schema) as other:
        for round_ in range(150):
            names = [f"{round_}-{at}" for at in range(3)]
            answers = await asyncio.gather(
                store.enqueue([keyed(name) for name in names]),
                other.enqueue([keyed(name) for name in reversed(names)]),
                other.enqueue([keyed(names[1])]),
            )
            made = [one.id for answer in answers for one in answer if one.created]
            named = {one.id for answer in answers for one in answer}
            assert len(made) == 3
            assert named == set(made)

    [stats] = await store.stats("q")
    assert stats.pending == 450


@pytest.mark.usefixtures("no_deadlocks")
async def test_batches_that_replace_in_opposite_order_are_both_done(schema: str, store: Store) -> None:
    names = [f"k{at}" for at in range(6)]
    options: dict[str, Any] = {"on_conflict": "replace", "until": "claimed"}
    async with opened(schema) as other:
        for round_ in range(15):
            payloads = b"%d" % round_
            await asyncio.gather(
                store.enqueue([keyed(name, payloads, **options) for name in names]),
                other.enqueue([keyed(name, payloads, **options) for name in reversed(names)]),
            )

    claims = (await store.claim(ClaimRequest(["q"], 100, MINUTE))).jobs
    assert [claim.job.payload for claim in claims] == [b"14"] * 6


async def test_a_replace_that_races_a_claim_is_seen_by_the_claim_or_makes_a_new_job(schema: str, store: Store) -> None:
    outcomes: set[str] = set()
    async with opened(schema) as other:
        for _ in range(100):
            [old] = await store.enqueue([keyed(payload=b"old", on_conflict="replace")])
            claims, answer = await asyncio.gather(
                other.claim(ClaimRequest(["q"], 1, MINUTE)),
                store.enqueue([keyed(payload=b"new", on_conflict="replace")]),
                return_exceptions=True,
            )
            if isinstance(claims, BaseException):
                raise claims
            outcomes.add(await _agree(store, old.id, claims.jobs, answer))

    # a key that the claim has freed is free: nobody is refused
    assert outcomes <= {"replaced", "new"}


async def _agree(store: Store, old: str, claims: list[Any], answer: list[Enqueued] | BaseException) -> str:
    """Check that what both were told is what is kept, and end all jobs."""
    seen = {claim.job.id: claim.job.payload for claim in claims}
    rest = (await store.claim(ClaimRequest(["q"], 10, MINUTE))).jobs
    after = {claim.job.id: claim.job.payload for claim in rest}
    await store.settle([Settlement(claim.job.id, claim.token, ToSucceeded()) for claim in (*claims, *rest)])
    if isinstance(answer, UniqueConflict):
        return "refused"
    if isinstance(answer, BaseException):
        raise answer
    if answer[0].created:
        assert seen == {old: b"old"}
        assert after == {answer[0].id: b"new"}
        return "new"
    assert seen | after == {old: b"new"}
    return "replaced"


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    "verdict", [ToSucceeded(), ToSucceeded(b"1", "json"), ToDead(Failure("no")), ToCancelled("no")]
)
async def test_a_key_that_is_held_to_the_end_is_free_at_every_end(store: Store, verdict: Verdict, keep: bool) -> None:  # noqa: FBT001
    await store.enqueue([keyed(until="finished")])
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
    assert not (await store.enqueue([keyed(until="finished")]))[0].created

    await store.settle([Settlement(claim.job.id, claim.token, verdict, keep=keep)])

    assert (await store.enqueue([keyed(until="finished")]))[0].created


async def test_a_key_that_is_held_to_the_end_is_free_after_a_cancel_and_after_a_rescue_to_dead(store: Store) -> None:
    [first] = await store.enqueue([keyed(until="finished")])
    assert await store.cancel([first.id], Retention()) == [CancelOutcome.REMOVED]
    [second] = await store.enqueue([keyed(until="finished")])
    await store.claim(ClaimRequest(["q"], 1, timedelta(0)))
    await store.rescue(RescueRequest(to="dead"), Retention())
    [third] = await store.enqueue([keyed(until="finished")])

    assert second.created
    assert third.created


@pytest.mark.usefixtures("no_deadlocks")
async def test_acks_and_enqueues_of_the_same_keys_never_stand_in_each_others_way(schema: str, store: Store) -> None:
    names = [f"k{at}" for at in range(8)]
    async with opened(schema) as other, asyncio.timeout(60):
        for round_ in range(40):
            await store.enqueue([keyed(name, until="finished") for name in names])
            claims = (await store.claim(ClaimRequest(["q"], 100, MINUTE))).jobs
            ordered = sorted(claims, key=lambda claim: str(claim.job.unique_key), reverse=round_ % 2 == 0)
            await asyncio.gather(
                store.settle([Settlement(claim.job.id, claim.token, ToSucceeded()) for claim in ordered]),
                other.enqueue([keyed(name, until="finished") for name in names]),
                other.enqueue([keyed(name, until="finished") for name in reversed(names)]),
            )
            rest = (await store.claim(ClaimRequest(["q"], 100, MINUTE))).jobs
            await store.settle([Settlement(claim.job.id, claim.token, ToSucceeded()) for claim in rest])

    assert (await store.enqueue([keyed("k0", until="finished")]))[0].created


@pytest.mark.usefixtures("no_deadlocks")
async def test_a_key_that_time_has_freed_is_taken_by_one_of_those_who_race_for_it(schema: str, store: Store) -> None:
    async with opened(schema) as other, connection_to(schema) as outside:
        names = [f"k{at}" for at in range(3)]
        for round_ in range(40):
            answers = await asyncio.gather(
                store.enqueue([keyed(name, until=timedelta(hours=1)) for name in names]),
                other.enqueue([keyed(name, until=timedelta(hours=1)) for name in reversed(names)]),
            )
            made = [one.id for answer in answers for one in answer if one.created]
            assert len(made) == 3, round_
            assert {one.id for answer in answers for one in answer} == set(made)
            await outside.execute("update windlass_hold set expires_at = clock_timestamp() - interval '1 s'")
