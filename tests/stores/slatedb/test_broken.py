"""A database that breaks under its owner: callers are told, and it is opened anew by itself."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NoReturn

import pytest

from tests.stores.slatedb.breaking import breaking, counts_are_right, repeated
from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import (
    PATIENCE,
    Held,
    database_of,
    engine_of,
    eventually,
    gathering,
    impatient,
    in_room,
    new_address,
    opened,
    recorded,
    room_of,
    rooms,
    until_full,
)
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable
from windlass.core.failpoint import arm, disarm
from windlass.core.job import Failure
from windlass.core.requests import ClaimRequest, Settled
from windlass.core.topics import OWNER, Topic
from windlass.core.verdict import ToRetry
from windlass.stores.slatedb import SlateStore, opening, owning, queues
from windlass.stores.slatedb.dispatcher import Dispatcher, Group
from windlass.stores.slatedb.view import View
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 1, MINUTE)


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


@pytest.fixture
def _quick_to_open_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owning, "OPEN_AGAIN_AFTER", 0.05)


pytestmark = pytest.mark.usefixtures("_quick_to_open_again")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    disarm()


async def test_a_database_that_was_closed_is_opened_anew_and_has_all_that_was_acknowledged(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(1, 5)])
    [claim] = (await store.claim(REQUEST)).jobs
    before = database_of(store)

    await in_room(store, engine_of(store).shutdown)
    [done], errors = await repeated(lambda: store.enqueue([job(5)]))

    assert errors
    assert done.id == numbered(5)
    assert database_of(store) is not before
    assert await store.settle([settlement(claim)]) == [Settled.DONE]
    [stats] = await store.stats("email")
    assert (stats.pending, stats.succeeded, stats.totals.enqueued) == (4, 1, 5)
    assert await counts_are_right(store)


async def test_calls_under_way_are_told_when_the_database_breaks(store: SlateStore) -> None:
    held = Held(store)
    calls: list[asyncio.Future[Any]] = [asyncio.ensure_future(store.enqueue([job(1)]))]
    await held.begun()
    calls.append(asyncio.ensure_future(store.stats()))
    await until_full(store)
    calls.append(asyncio.ensure_future(store.enqueue([job(2)])))

    with recorded(store, OWNER) as rung:
        await in_room(store, engine_of(store).shutdown)
        await held.let_go()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait(calls)

        assert isinstance(calls[0].exception(), OutcomeUnknown)
        assert all(isinstance(call.exception(), (OutcomeUnknown, StoreUnavailable)) for call in calls)
        # whoever sleeps looks again
        assert rung
    [done, other], _ = await repeated(lambda: store.enqueue([job(1), job(2)]))
    assert (done.id, other.id) == (numbered(1), numbered(2))
    assert (await store.stats("email"))[0].pending == 2
    assert await counts_are_right(store)


async def test_what_is_served_while_the_database_is_lost_tells_nothing_that_was_lost_with_it(store: SlateStore) -> None:
    held = Held(store)
    first = asyncio.ensure_future(store.enqueue([job(1)]))
    await held.begun()
    database = database_of(store)
    snapshot, begun, over = database.snapshot, threading.Event(), asyncio.Event()

    async def hold() -> View:
        begun.set()
        await over.wait()
        return await snapshot()

    vars(database)["snapshot"] = hold
    async with gathering(store):
        # it is there, so nothing is written
        again = asyncio.ensure_future(store.enqueue([job(1)]))
        look = asyncio.ensure_future(store.get([numbered(1)]))
    await eventually(begun.is_set)

    vars(database)["_fenced"] = True
    with pytest.raises(Fenced):
        await first

    async def go_on() -> None:
        over.set()

    await in_room(store, go_on)
    with pytest.raises(Fenced):
        await look
    with pytest.raises(Fenced):
        await again
    await held.let_go()


async def test_a_mistake_of_ours_in_a_move_leaves_nothing_of_it_behind(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.enqueue([job(1)])
    join = queues.Queue.join

    def fail(queue: queues.Queue, record: Any) -> None:  # noqa: ANN401 - a record
        if record.id == numbered(4):
            message = "a mistake"
            raise KeyError(message)
        join(queue, record)

    monkeypatch.setattr(queues.Queue, "join", fail)
    with pytest.raises(OutcomeUnknown) as unknown:
        await store.enqueue([job(3), job(4), job(5)])
    assert unknown.value.job_id == numbered(3)
    assert isinstance(unknown.value.__cause__, StoreUnavailable)
    assert "a mistake" in str(unknown.value.__cause__)
    monkeypatch.setattr(queues.Queue, "join", join)

    found, _ = await repeated(lambda: store.get([numbered(n) for n in (1, 3, 4, 5)]))

    assert [each is not None for each in found] == [True, False, False, False]
    await store.enqueue([job(3), job(4), job(5)])
    assert (await store.stats("email"))[0].pending == 4
    assert await counts_are_right(store)


async def test_a_flush_that_fails_for_an_unknown_reason_is_not_taken_for_done(store: SlateStore) -> None:
    before = database_of(store)
    failures = iter([OSError("nobody knows")])

    def fail_once() -> None:
        for failure in failures:
            raise failure

    arm("slatedb.before_flush", fail_once)
    with pytest.raises(OutcomeUnknown):
        await store.enqueue([job(1)])

    [done], _ = await repeated(lambda: store.enqueue([job(1)]))

    assert done.id == numbered(1)
    assert database_of(store) is not before
    assert (await store.stats("email"))[0].totals.enqueued == 1


async def test_what_keeps_a_database_from_being_opened_anew_is_told_until_it_has_passed(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.enqueue([job(1)])

    async def fail(*_: object) -> NoReturn:
        message = "a mistake while it is opened"
        raise ValueError(message)

    monkeypatch.setattr(owning, "read_begin", fail)
    await in_room(store, engine_of(store).shutdown)
    told = ""
    async with asyncio.timeout(PATIENCE):
        while "while it is opened" not in told:
            with pytest.raises(StoreUnavailable) as unavailable:
                await store.stats()
            told = str(unavailable.value)

    monkeypatch.setattr(owning, "read_begin", opening.read_begin)
    [stats], _ = await repeated(lambda: store.stats("email"))

    assert stats.pending == 1


async def test_a_database_that_broke_is_not_taken_back_from_who_had_it_since() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1)])
        await in_room(store, engine_of(store).shutdown)
        # as another process does, which has left again when this one looks
        del rooms()[address.place]
        async with opened(replace(address, take_over=True)) as other:
            await other.enqueue([job(2)])

        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Fenced):
                await until_owned_or_fenced(store)
        with pytest.raises(Fenced):
            await store.stats()


async def until_owned_or_fenced(store: SlateStore) -> None:
    while True:
        try:
            await store.stats()
        except Fenced:
            raise
        except StoreUnavailable:
            await asyncio.sleep(0.01)
        else:
            return


async def test_a_store_whose_database_is_broken_can_be_closed_and_opened() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1)])
        await in_room(store, engine_of(store).shutdown)

    async with opened(address) as store:
        assert [claim.job.id for claim in (await store.claim(REQUEST)).jobs] == [numbered(1)]


@pytest.mark.parametrize("lost", [False, True])
async def test_a_settlement_in_doubt_is_what_the_database_has_when_it_is_open_again(
    store: SlateStore, *, lost: bool
) -> None:
    await store.enqueue([job(1)])
    [claim] = (await store.claim(REQUEST)).jobs
    end = settlement(claim, keep=False)
    if lost:
        vars(engine_of(store))["write"] = _pretend
    error = await breaking(store, "flush", lambda: store.settle([end]))

    assert isinstance(error, OutcomeUnknown)
    result, _ = await repeated(lambda: store.settle([end]))

    assert result == [Settled.DONE if lost else Settled.REPEATED]
    assert await store.settle([end]) == [Settled.LOST if lost else Settled.REPEATED]
    assert await counts_are_right(store)


async def test_a_retry_in_doubt_is_no_lost_claim_when_its_job_was_claimed_again(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    [claim] = (await store.claim(REQUEST)).jobs
    end = settlement(claim, ToRetry(ZERO, Failure("boom")))
    assert isinstance(await breaking(store, "write", lambda: store.settle([end])), OutcomeUnknown)

    claimed, _ = await repeated(lambda: store.claim(REQUEST))
    [again] = claimed.jobs

    assert again.job.attempt == 2
    assert await store.settle([end]) == [Settled.REPEATED]
    assert await store.settle([settlement(again)]) == [Settled.DONE]


async def _pretend(_: object) -> None:
    """Write nothing."""


async def test_whoever_looks_after_the_store_goes_on_after_a_mistake(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expire, mistakes = owning.Owning.expire, iter(["a mistake"])

    def fail_once(self: owning.Owning) -> None:
        for mistake in mistakes:
            raise KeyError(mistake)
        expire(self)

    monkeypatch.setattr(owning.Owning, "expire", fail_once)
    held = Held(store)
    with impatient(store):
        await eventually(lambda: "a mistake" in caplog.text)

        with pytest.raises(OutcomeUnknown):
            await store.enqueue([job(1)])
    await held.let_go()


async def test_whoever_flushes_goes_on_after_a_mistake(store: SlateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, mistakes = room_of(store).hub.ring, iter(["a mistake"])

    def fail_once(topics: Iterable[Topic]) -> None:
        for mistake in mistakes:
            raise KeyError(mistake)
        ring(topics)

    monkeypatch.setattr(room_of(store).hub, "ring", fail_once)
    await store.enqueue([job(1)])

    [done], _ = await repeated(lambda: store.enqueue([job(2)]))

    assert done.id == numbered(2)
    assert (await store.stats("email"))[0].pending == 2


async def test_a_request_whose_name_was_used_for_other_settlements_harms_nobody_when_its_caller_goes(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.enqueue([job(1), job(2)])
    ends = [settlement(claim) for claim in (await store.claim(ClaimRequest(["email"], 2, MINUTE))).jobs]
    await store.settle(ends, request_id="r")
    begun, over = threading.Event(), threading.Event()
    get = database_of(store).get

    async def get_slowly(key: bytes) -> bytes | None:
        begun.set()
        over.wait(PATIENCE)
        return await get(key)

    monkeypatch.setattr(database_of(store), "get", get_slowly)
    call = asyncio.ensure_future(store.settle(ends[:1], request_id="r"))
    await eventually(begun.is_set)
    call.cancel()
    await asyncio.wait([call])
    over.set()

    assert (await store.stats("email"))[0].succeeded == 2


async def test_whoever_serves_goes_on_after_a_mistake(store: SlateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add, mistakes = vars(Dispatcher)["_add"], iter(["a mistake"])

    def fail_once(self: Dispatcher, group: Group) -> None:
        for mistake in mistakes:
            raise KeyError(mistake)
        add(self, group)

    monkeypatch.setattr(Dispatcher, "_add", fail_once)

    [done], told = await repeated(lambda: store.enqueue([job(1)]))

    assert done.id == numbered(1)
    assert told


async def test_a_look_that_fails_beside_a_flush_that_fails_is_logged_once(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = Held(store)
    enqueue = asyncio.ensure_future(store.enqueue([job(1)]))
    await held.begun()

    class Unreadable:
        async def get(self, key: bytes) -> bytes | None:
            raise StoreUnavailable(repr(key), retryable=True)

        async def scan(self, start: bytes, end: bytes, **_: object) -> NoReturn:
            raise StoreUnavailable(repr((start, end)), retryable=True)

    async def snapshot() -> Any:  # noqa: ANN401 - nobody looks what it is
        return Unreadable()

    monkeypatch.setattr(database_of(store), "snapshot", snapshot)
    with pytest.raises(StoreUnavailable):
        await store.get([numbered(1)])
    await in_room(store, engine_of(store).shutdown)
    await held.let_go()
    with pytest.raises(OutcomeUnknown):
        await enqueue

    async def collect() -> None:
        gc.collect()

    await repeated(store.stats)
    await in_room(store, collect)
    assert "never retrieved" not in caplog.text
