"""Jobs that were claimed for a caller who has gone go back, also when the database breaks meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any, Final, NoReturn

import pytest

from tests.stores.slatedb.breaking import breaking, counts_are_right, repeated
from tests.stores.slatedb.lived import job
from tests.stores.slatedb.opened import Held, engine_of, eventually, eventually_is, opened, room_of, until_full
from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.requests import ClaimRequest, Settled
from windlass.stores.slatedb import SlateStore, owning, room
from windlass.stores.slatedb.table import Table
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 1, MINUTE)


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


@pytest.fixture(autouse=True)
def _quick_to_open_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owning, "OPEN_AGAIN_AFTER", 0.05)


@pytest.mark.parametrize("breaks_at", ["write", "flush"])
async def test_jobs_claimed_when_the_database_breaks_go_back_when_it_is_open_again(
    store: SlateStore, breaks_at: str
) -> None:
    await store.enqueue([job(1)])
    claim = await breaking(store, breaks_at, lambda: store.claim(REQUEST))

    assert isinstance(claim, StoreUnavailable)

    async def claimed_again() -> int:
        claimed, _ = await repeated(lambda: store.claim(REQUEST))
        return len(claimed.jobs)

    await eventually_is(claimed_again, 1)
    assert await counts_are_right(store)


async def test_jobs_whose_way_back_was_lost_go_back_when_the_database_is_open_again(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    held = Held(store)
    claim = asyncio.ensure_future(store.claim(REQUEST))
    await held.begun()

    async def lose(_: object) -> NoReturn:
        message = "broken by plan"
        raise OSError(message)

    claim.cancel()
    engine_of(store).write = lose
    await held.let_go()

    async def claimed_again() -> int:
        claimed, _ = await repeated(lambda: store.claim(REQUEST))
        return len(claimed.jobs)

    await eventually_is(claimed_again, 1)


@pytest.mark.parametrize(
    "error", [StoreUnavailable("not to be read now", retryable=True), OSError("broken by plan")], ids=["read", "group"]
)
async def test_jobs_whose_way_back_could_not_begin_go_back_later(
    monkeypatch: pytest.MonkeyPatch, store: SlateStore, error: Exception
) -> None:
    await store.enqueue([job(1)])
    failed = failing_reads(monkeypatch, error, times=2)

    await claim_and_leave(store)

    async def waiting() -> int:
        [stats], _ = await repeated(lambda: store.stats("email"))
        return stats.pending

    await eventually_is(waiting, 1)
    assert len(failed) == 2
    claimed, _ = await repeated(lambda: store.claim(REQUEST))
    [claim] = claimed.jobs
    assert claim.job.attempt == 1


async def test_jobs_that_the_database_breaks_with_whenever_they_go_back_are_left_to_rescue(
    monkeypatch: pytest.MonkeyPatch, store: SlateStore, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "MOST_TRIES", 2)
    await store.enqueue([job(1)])
    failed = failing_reads(monkeypatch, OSError("broken by plan"), times=100)

    await claim_and_leave(store)

    await eventually(lambda: "could not be given back: rescue will" in caplog.text)
    assert len(failed) == 3
    [stats], _ = await repeated(lambda: store.stats("email"))
    assert stats.running == 1


async def test_jobs_stay_with_who_repeated_their_claim_although_the_database_breaks_then(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    held = Held(store)
    first = asyncio.ensure_future(store.claim(REQUEST, request_id="r"))
    await held.begun()
    first.cancel()
    again = asyncio.ensure_future(store.claim(REQUEST, request_id="r"))
    await until_full(store)
    # what would go back for the first is served together with this one, and lost with it
    other = asyncio.ensure_future(store.enqueue([job(2, "other")]))
    await asyncio.sleep(0)
    break_at_flush(store, 2)

    await held.let_go()
    [claim] = (await again).jobs
    with pytest.raises(OutcomeUnknown):
        await other
    await repeated(lambda: store.enqueue([job(3, "other")]))
    await eventually(lambda: not vars(room_of(store))["_later"])

    assert [(stats.running, stats.pending) for stats in await store.stats("email")] == [(1, 0)]
    assert await store.settle([settlement(claim)]) == [Settled.DONE]


def break_at_flush(store: SlateStore, last: int) -> None:
    """Let the database break with the flush that comes so many after those under way."""
    engine = engine_of(store)
    flush, left = engine.flush_with_options, last

    async def flush_or_break(*options: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            message = "broken by plan"
            raise OSError(message)
        await flush(*options)

    engine.flush_with_options = flush_or_break


def failing_reads(monkeypatch: pytest.MonkeyPatch, error: Exception, *, times: int) -> list[Exception]:
    """Let the first reads of jobs of a call fail; return a list that gets an entry each time."""
    failed: list[Exception] = []
    find = Table.find

    async def fail(table: Table, ids: Iterable[JobId], *parts: Any, **named: Any) -> None:  # noqa: ANN401 - as it takes them
        wanted = list(ids)
        if wanted and not (parts or named) and len(failed) < times:
            failed.append(error)
            raise error
        await find(table, wanted, *parts, **named)

    monkeypatch.setattr(Table, "find", fail)
    return failed


async def claim_and_leave(store: SlateStore) -> None:
    """Claim what there is for a caller who has gone when it is durable."""
    held = Held(store)
    claim = asyncio.ensure_future(store.claim(REQUEST))
    await held.begun()
    claim.cancel()
    await held.let_go()
