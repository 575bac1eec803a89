"""No job is ever hidden below a mark, whatever transactions do meanwhile (docs/decisions/0013-marks.md)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Self

import asyncpg
import pytest

import windlass
from tests.postgres.private import PrivateCluster
from tests.stores.postgres.racing import MINUTE, connection_to, opened
from windlass.borrow import borrow
from windlass.connect import open_store
from windlass.core.job import Claim, Failure, PreparedJob
from windlass.core.requests import ClaimRequest, RescueRequest, Settlement
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.stores.postgres import survey
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.moves.marks import Line, Look, Ready
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.work import Many, Statement, Work
from windlass.testing.conformance.given import a_job

LINE: Final = Ready("q", 1000)


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
async def outside(schema: str, store: Store) -> AsyncIterator["asyncpg.Connection[Any]"]:  # noqa: ARG001 - makes the schema
    async with connection_to(schema) as connection:
        yield connection


async def drive(connection: "asyncpg.Connection[Any]", move: Work[Any]) -> Any:  # noqa: ANN401
    """Run a move on a connection, each statement by itself."""
    try:
        wanted = next(move)
        while True:
            assert not isinstance(wanted, Many)
            text, values = statement(wanted.name)
            wanted = move.send(await connection.fetch(text, *values(wanted.parameters)))
    except StopIteration as end:
        return end.value


async def finish(surveyor: "asyncpg.Connection[Any]", line: Line, look: Look) -> bool:
    """Raise a mark as the survey does, if the writers of the look have ended."""
    if not await drive(surveyor, marks.ended(look.writers)):
        return False
    async with surveyor.transaction():
        await drive(surveyor, marks.raise_mark(line, look.mark))
    return True


async def ids(store: Store, limit: int = 10) -> set[str]:
    return {claim.job.id for claim in (await store.claim(ClaimRequest(["q"], limit, MINUTE))).jobs}


async def enqueue_by(store: Store, connection: "asyncpg.Connection[Any]") -> str:
    [done] = await store.join(borrow(connection)).enqueue([a_job("q")])
    return done.id


async def test_a_job_of_a_prepared_transaction_is_claimed_when_that_is_committed() -> None:
    with PrivateCluster(conf={"max_prepared_transactions": "5"}) as private:
        url = private.as_cluster().new_schema() + "&notify=off"
        async with opened(url) as store, connection_to(url) as writer, connection_to(url) as surveyor:
            await writer.execute("begin")
            late = await enqueue_by(store, writer)
            look = await drive(surveyor, marks.look(LINE))
            # its session goes on to other things, but it has not ended
            await writer.execute("prepare transaction 'late'")

            assert not await finish(surveyor, LINE, look)
            await writer.execute("commit prepared 'late'")
            assert await finish(surveyor, LINE, look)

            assert await ids(store) == {late}


async def test_a_job_of_a_transaction_that_was_prepared_before_is_claimed_too() -> None:
    with PrivateCluster(conf={"max_prepared_transactions": "5"}) as private:
        url = private.as_cluster().new_schema() + "&notify=off"
        async with opened(url) as store, connection_to(url) as writer, connection_to(url) as surveyor:
            await writer.execute("begin")
            late = await enqueue_by(store, writer)
            await writer.execute("prepare transaction 'late'")
            look = await drive(surveyor, marks.look(LINE))

            assert not await finish(surveyor, LINE, look)
            await writer.execute("commit prepared 'late'")
            assert await finish(surveyor, LINE, look)

            assert await ids(store) == {late}


async def test_a_job_of_a_prepared_transaction_is_claimed_although_the_server_was_restarted_meanwhile() -> None:
    with PrivateCluster(conf={"max_prepared_transactions": "5"}) as private:
        url = private.as_cluster().new_schema() + "&notify=off"
        async with opened(url) as store, connection_to(url) as writer, connection_to(url) as surveyor:
            await writer.execute("begin")
            late = await enqueue_by(store, writer)
            look = await drive(surveyor, marks.look(LINE))
            await writer.execute("prepare transaction 'late'")
        private.restart()
        async with opened(url) as store, connection_to(url) as writer, connection_to(url) as surveyor:
            assert not await finish(surveyor, LINE, look)
            await writer.execute("commit prepared 'late'")
            assert await finish(surveyor, LINE, look)

            assert await ids(store) == {late}


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_a_release_in_a_callers_transaction_is_not_hidden_by_a_mark_that_it_cannot_see(
    schema: str,
    store: Store,
    outside: "asyncpg.Connection[Any]",
    isolation: Any,  # noqa: ANN401
) -> None:
    await store.enqueue([job := a_job("q")])
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
    async with connection_to(schema) as caller:
        transaction = caller.transaction(isolation=isolation)
        await transaction.start()
        await caller.fetchval("select count(*) from windlass_job")
        look = await drive(outside, marks.look(LINE))
        assert await finish(outside, LINE, look)
        assert look.mark > claim.job.run_at
        try:
            await store.join(borrow(caller)).settle([Settlement(job.id, claim.token, ToReleased())])
            await transaction.commit()
        except windlass.StoreUnavailable:
            # refused is right as well: nothing was changed
            await transaction.rollback()
            await store.settle([Settlement(job.id, claim.token, ToReleased())])

    assert await ids(store) == {job.id}


async def test_a_mark_that_hides_every_job_is_dropped_although_nothing_can_be_claimed(
    monkeypatch: pytest.MonkeyPatch, schema: str, outside: "asyncpg.Connection[Any]"
) -> None:
    monkeypatch.setattr(survey, "CHECK_EVERY", 0.0)
    await outside.execute(
        "insert into windlass_queue (queue, priorities, marks, due_mark)"
        " values ('q', '{1000}', array[clock_timestamp() + interval '1 hour'], clock_timestamp() + interval '1 hour')"
    )
    async with opened(schema) as store, asyncio.timeout(20):
        await store.enqueue([job := a_job("q")])
        while not (found := await ids(store)):  # noqa: ASYNC110 - the claims are what begins the look
            await asyncio.sleep(0.01)

    assert found == {job.id}


async def test_a_mark_of_leases_that_lies_in_the_future_is_dropped(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([job := a_job("q")])
    await store.claim(ClaimRequest(["q"], 1, timedelta(0)))
    await drive(outside, _set_lease_mark(timedelta(hours=1)))
    assert not await store.rescue(RescueRequest(), Retention())

    assert await drive(outside, marks.check_leases())

    assert [rescued.id for rescued in await store.rescue(RescueRequest(), Retention())] == [job.id]
    assert not await drive(outside, marks.check_leases())


def _set_lease_mark(ahead: timedelta) -> Work[None]:
    [(now, _)] = yield Statement("lease_mark")
    yield Statement("set_lease_mark", {"mark": now + ahead})


async def test_a_mark_that_was_lowered_while_it_is_checked_is_not_called_wrong(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([job := a_job("q")])
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
    look = await drive(outside, marks.look(LINE))
    await finish(outside, LINE, look)

    move = marks.check("q")
    wanted = next(move)
    assert isinstance(wanted, Statement)
    text, values = statement(wanted.name)
    seen = await outside.fetch(text, *values(wanted.parameters))
    await store.settle([Settlement(job.id, claim.token, ToReleased())])
    async with connection_to(schema) as checker:
        wrong = await drive(checker, _resumed(move, seen))

    assert not wrong
    assert await ids(store) == {job.id}


def _resumed(move: Work[bool], rows: Any) -> Work[bool]:  # noqa: ANN401
    """Go on with a move that has asked for `rows`."""
    try:
        wanted = move.send(rows)
        while True:
            wanted = move.send((yield wanted))
    except StopIteration as end:
        return bool(end.value)


async def test_every_job_is_worked_while_marks_rise_as_often_as_they_can(
    monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    monkeypatch.setattr(survey, "RAISE_AFTER", 5)
    monkeypatch.setattr(survey, "LOOK_FOR_WRITERS", 0.005)
    async with Stress(schema, seed=1) as stress:
        await stress.run(seconds=5)
        left = await stress.unclaimed()

    assert left == []
    assert stress.done == stress.enqueued
    assert stress.raised > 5, "marks hardly rose: this shows nothing"


class Stress:
    """Enqueuers and claimers on one queue, each with connections of its own, while marks rise."""

    def __init__(self, url: str, seed: int) -> None:
        self.enqueued: set[str] = set()
        self.done: set[str] = set()
        self.raised = 0
        self._url = url
        self._rng = random.Random(seed)
        self._stores: list[Store] = []
        self._over = False
        self._ended = False

    async def __aenter__(self) -> Self:
        self._stores = [open_store(self._url) for _ in range(3)]
        for store in self._stores:
            await store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        for store in self._stores:
            await store.close()

    async def run(self, *, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._stop)
        async with asyncio.TaskGroup() as group:
            claimers = [group.create_task(self._claim(self._stores[at % 3])) for at in range(4)]
            watching = group.create_task(self._watch())
            dumping = group.create_task(self._hold_snapshots())
            async with asyncio.TaskGroup() as producers:
                for at in range(2):
                    producers.create_task(self._enqueue(self._stores[at]))
                    producers.create_task(self._enqueue_in_transactions(self._stores[at]))
            await dumping
            self._ended = True
            await asyncio.gather(*claimers, watching)

    async def unclaimed(self) -> list[str]:
        async with connection_to(self._url) as connection:
            return [
                str(row[0]) for row in await connection.fetch("select id from windlass_job where finished_at is null")
            ]

    def _stop(self) -> None:
        self._over = True

    def _job(self) -> PreparedJob:
        delay = timedelta(milliseconds=self._rng.choice([5, 50, 300])) if self._rng.random() < 0.3 else None
        return a_job("q", delay=delay, max_attempts=1000)._replace(priority=self._rng.choice([0, 1000, 1000, 2000]))

    async def _enqueue(self, store: Store) -> None:
        while not self._over:
            jobs = [self._job() for _ in range(self._rng.randint(1, 5))]
            await store.enqueue(jobs)
            self.enqueued |= {job.id for job in jobs}
            await asyncio.sleep(self._rng.random() * 0.01)

    async def _enqueue_in_transactions(self, store: Store) -> None:
        async with connection_to(self._url) as connection:
            while not self._over:
                job, lost = self._job(), self._job()
                async with connection.transaction():
                    with suppress(ZeroDivisionError):
                        async with connection.transaction():
                            await store.join(borrow(connection)).enqueue([lost])
                            raise ZeroDivisionError
                    await asyncio.sleep(self._rng.choice([0, 0.01, 0.2]))
                    await store.join(borrow(connection)).enqueue([job])
                    await asyncio.sleep(self._rng.choice([0, 0.01, 0.2]))
                self.enqueued.add(job.id)

    async def _hold_snapshots(self) -> None:
        """Read as `pg_dump` does, so that what is gone stays in the indexes."""
        async with connection_to(self._url) as connection:
            while not self._over:
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    await connection.fetch("select count(*) from windlass_job")
                    await asyncio.sleep(0.5)

    async def _claim(self, store: Store) -> None:
        idle = 0
        while not self._ended or idle < 20:
            claims = (await store.claim(ClaimRequest(["q", "other"], self._rng.randint(1, 10), MINUTE))).jobs
            if self._rng.random() < 0.1 and claims:
                await store.set_paused("other", paused=bool(self._rng.getrandbits(1)))
            idle = 0 if claims else idle + 1
            await asyncio.sleep(0.002 if claims else 0.05)
            settlements = [Settlement(claim.job.id, claim.token, self._verdict(claim)) for claim in claims]
            await store.settle(settlements)
            self.done |= {one.job_id for one in settlements if isinstance(one.verdict, ToSucceeded)}

    def _verdict(self, claim: Claim) -> Verdict:
        if claim.job.delivery > 5 or self._rng.random() < 0.6:
            return ToSucceeded()
        others: list[Verdict] = [
            ToReleased(),
            ToReleased(started=True),
            ToSnoozed(timedelta(milliseconds=30)),
            ToSnoozed(timedelta(0)),
            ToRetry(timedelta(0), Failure("again")),
            ToRetry(timedelta(milliseconds=20), Failure("again")),
        ]
        return self._rng.choice(others)

    async def _watch(self) -> None:
        """Count how often a mark is another one."""
        last: Any = None
        async with connection_to(self._url) as connection:
            while not self._ended:
                now = await connection.fetch("select marks, due_mark from windlass_queue where queue = 'q'")
                self.raised += now != last
                last = now
                await asyncio.sleep(0.02)


async def test_with_more_priorities_than_marks_every_job_is_claimed_in_its_order(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    priorities = [priority * 100 for priority in range(marks.MOST_MARKS + 4)]
    for priority in priorities:
        line = Ready("q", priority)
        assert await finish(outside, line, await drive(outside, marks.look(line)))
    kept = await outside.fetchval("select priorities from windlass_queue where queue = 'q'")
    jobs = [a_job("q")._replace(priority=priority + more) for priority in reversed(priorities) for more in (0, 1)]
    await store.enqueue([*jobs, last := a_job("q")._replace(priority=2**31 - 1)])

    claims = (await store.claim(ClaimRequest(["q"], 100, MINUTE))).jobs

    # the oldest gave way
    assert kept == priorities[-marks.MOST_MARKS :]
    assert [claim.job.priority for claim in claims] == [*sorted(job.priority for job in jobs), last.priority]


@pytest.mark.parametrize("way", ["retry", "reschedule", "replace", "rescue"])
async def test_a_job_that_waited_for_its_row_while_the_mark_rose_is_claimed(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]", way: str
) -> None:
    """Its statement began before the look and writes after it: it is among the writers, or writes a later time."""
    await store.enqueue([job := a_job("q", unique=Unique("k", on_conflict="replace"))])
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "retry": lambda: store.retry([job.id]),
        "reschedule": lambda: store.reschedule([job.id], None),
        "replace": lambda: store.enqueue([a_job("q", unique=Unique("k", on_conflict="replace"))]),
        "rescue": lambda: store.rescue(RescueRequest(), Retention()),
    }
    if way == "retry":
        await store.cancel([job.id], Retention())
    if way == "rescue":
        await store.claim(ClaimRequest(["q"], 1, timedelta(0)))
    async with connection_to(schema) as blocker:
        async with blocker.transaction():
            await blocker.execute("select 1 from windlass_job for update")
            moving = asyncio.ensure_future(steps[way]())
            # a rescue passes by what is locked, the others wait
            await asyncio.wait({moving}, timeout=0.2)
            look = await drive(outside, marks.look(LINE))
        await moving
    if way == "rescue":
        await steps[way]()
    raised = await finish(outside, LINE, look)

    assert raised
    assert await ids(store) == {job.id}
