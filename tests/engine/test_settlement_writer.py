import asyncio
import logging
from typing import Any

import pytest

from tests.engine.given import a_handler, an_attempt, attempt_of, claims, settlements_of
from windlass.client.client import Client
from windlass.core.errors import NotAllowed, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Failure, NewJob
from windlass.core.retry import Fixed
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import GivenBack, Outcome, Raised, Returned
from windlass.engine.settlement_writer import PLAIN, StateChange
from windlass.testing import FakeClock


class Counting:
    """A store that keeps note of its settlements, and fails at some of them, or refuses one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sizes: list[int] = []
        self.errors: list[Exception] = []
        self.refused: dict[JobId, WindlassError] = {}

    async def settle(self, settlements: Any) -> Any:  # noqa: ANN401 - whatever the store takes and gives
        self.sizes.append(len(settlements))
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        free = [settlement for settlement in settlements if settlement.job_id not in self.refused]
        answers = iter(await self._store.settle(free))
        return [self.refused.get(settlement.job_id) or next(answers) for settlement in settlements]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)


def of_jobs(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "windlass.jobs"]


@pytest.fixture
def counting(client: Client) -> Counting:
    made: Any = Counting(client.store)
    client.store = made
    counted: Counting = made
    return counted


async def test_what_ends_while_one_settlement_is_on_its_way_goes_out_with_the_next(
    client: Client, counting: Counting
) -> None:
    """One call, one commit."""
    settlements = settlements_of(client)
    attempts = [attempt_of(client, claim) for claim in await claims(client, 50)]
    settlements.add(attempts[0], PLAIN)
    await asyncio.sleep(0)
    for attempt in attempts[1:]:
        settlements.add(attempt, PLAIN)
    assert len(settlements) == 50

    await settlements.drain()

    assert counting.sizes == [1, 49]
    assert len(settlements) == 0
    assert (await client.stats("default")).succeeded == 50


async def test_a_large_batch_is_written_in_pieces(client: Client, counting: Counting) -> None:
    settlements = settlements_of(client)
    attempts = [attempt_of(client, claim) for claim in await claims(client, 2_500)]

    for attempt in attempts:
        settlements.add(attempt, PLAIN)
    await settlements.drain()

    assert counting.sizes == [1_000, 1_000, 500]


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
async def test_what_the_store_does_not_take_is_written_later(
    client: Client, counting: Counting, clock: FakeClock, error: Exception
) -> None:
    settlements = settlements_of(client)
    attempt = await an_attempt(client)
    settlements.held.add([attempt])
    counting.errors = [error, error]
    clock.advance(10)
    settlements.add(attempt, PLAIN)

    for _ in range(2):
        await clock.timers(1)
        assert (len(settlements), settlements.failing_since) == (1, 10.0)
        assert attempt in settlements.held
        clock.advance(2)
    await settlements.drain()

    assert settlements.failing_since is None
    assert settlements.held.attempts() == []
    job = await client.get(attempt.job.id)
    assert job is not None
    assert job.state is State.SUCCEEDED


async def test_the_end_of_an_attempt_that_lost_its_job_is_refused_and_said(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    settlements = settlements_of(client)
    attempt = await an_attempt(client)
    await client.rescue(force=True)

    settlements.add(attempt, Returned(b"1", "json"))
    await settlements.drain()

    job = await client.get(attempt.job.id)
    assert job is not None
    assert (job.state, job.result, attempt.reason) == (State.PENDING, None, "claim_lost")
    assert "its end by succeeded is not written" in caplog.text


async def test_one_that_is_refused_costs_its_neighbours_nothing(client: Client) -> None:
    settlements = settlements_of(client)
    attempts = [attempt_of(client, claim, a_handler(retry=Fixed(60))) for claim in await claims(client, 5)]
    await client.enqueue("next", b"", unique="key")
    conflict = NewJob("next", unique=Unique("key", on_conflict="raise"))
    attempts[2].then([conflict], {"written": b"no"})

    for attempt in attempts:
        settlements.held.add([attempt])
        settlements.add(attempt, PLAIN)
    await settlements.drain()

    states = [job.state for job in await client.jobs() if job.queue == "default"]
    assert states == [State.SUCCEEDED] * 2 + [State.SCHEDULED] + [State.SUCCEEDED] * 2
    assert await client.kv.get("written") is None
    assert settlements.held.attempts() == []


@pytest.mark.parametrize("error", [StoreUnavailable("locked", retryable=True), OutcomeUnknown("it")])
async def test_one_that_cannot_be_written_yet_is_tried_again_by_itself(
    client: Client, counting: Counting, clock: FakeClock, error: WindlassError, caplog: pytest.LogCaptureFixture
) -> None:
    settlements = settlements_of(client)
    locked, *others = [attempt_of(client, claim) for claim in await claims(client, 4)]
    counting.refused[locked.job.id] = error
    for attempt in (locked, *others[:-1]):
        settlements.held.add([attempt])
        settlements.add(attempt, PLAIN)
    await clock.timers(1)
    settlements.add(others[-1], PLAIN)
    for _ in range(10):
        await asyncio.sleep(0)

    assert (await client.stats("default")).succeeded == 3
    assert (len(settlements), settlements.held.attempts()) == (1, [locked])
    assert settlements.failing_since is None
    assert [each.job_id for each in settlements.last_words(lambda _: PLAIN)] == [locked.job.id]
    assert f"the end of job {locked.job.id} (work) is not written yet" in caplog.text
    clock.advance(2)
    await clock.timers(1)
    counting.refused.clear()
    clock.advance(5)
    await settlements.drain()

    assert counting.sizes == [3, 1, 1, 1]
    assert (len(settlements), len(settlements.held)) == (0, 0)
    assert (await client.stats("default")).succeeded == 4


async def test_one_that_is_refused_for_good_is_given_up_and_said(
    client: Client, counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not stop what comes, and its lease decides."""
    settlements = settlements_of(client)
    refused, other = [attempt_of(client, claim) for claim in await claims(client, 2)]
    counting.refused[refused.job.id] = StoreUnavailable("never this one")
    for attempt in (refused, other):
        settlements.held.add([attempt])
        settlements.add(attempt, PLAIN)

    await settlements.drain()

    assert settlements.held.attempts() == []
    stats = await client.stats("default")
    assert (stats.succeeded, stats.running) == (1, 1)
    assert f"the end of job {refused.job.id} (work) by succeeded is refused" in caplog.text
    assert "never this one" in caplog.text


async def test_one_that_is_refused_with_what_it_brings_has_failed(client: Client, counting: Counting) -> None:
    settlements = settlements_of(client)
    attempt = await an_attempt(client, a_handler(retry=Fixed(60)))
    attempt.then([NewJob("elsewhere", b"")], {})
    counting.refused[attempt.job.id] = NotAllowed("not in that queue")
    settlements.add(attempt, PLAIN)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    counting.refused.clear()

    await settlements.drain()

    assert (await client.stats("default")).scheduled == 1


async def test_one_that_is_refused_with_what_it_brings_is_logged_as_failed_alone(
    client: Client, counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.jobs")
    settlements = settlements_of(client)
    attempt = await an_attempt(client, a_handler(retry=Fixed(60)))
    attempt.then([NewJob("elsewhere", b"")], {})
    counting.refused[attempt.job.id] = NotAllowed("not in that queue")
    settlements.add(attempt, PLAIN)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    counting.refused.clear()

    await settlements.drain()

    assert [record.outcome for record in of_jobs(caplog)] == ["retry"]


async def test_a_success_that_brings_jobs_is_logged_with_the_time_of_its_end(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.jobs")
    settlements = settlements_of(client)
    attempt = await an_attempt(client)
    attempt.started_at = clock.monotonic()
    clock.advance(2)
    attempt.then([NewJob("elsewhere", b"")], {})
    settlements.add(attempt, PLAIN)
    clock.advance(5)
    assert of_jobs(caplog) == []

    await settlements.drain()

    assert [(record.outcome, record.seconds) for record in of_jobs(caplog)] == [("succeeded", 2)]


async def test_what_is_put_off_is_abandoned_with_the_others(
    client: Client, counting: Counting, clock: FakeClock
) -> None:
    settlements = settlements_of(client)
    attempt = await an_attempt(client)
    counting.refused[attempt.job.id] = StoreUnavailable("locked", retryable=True)
    settlements.add(attempt, PLAIN)
    await clock.timers(1)

    assert settlements.abandon() == 1
    await settlements.drain()

    assert len(settlements) == 0


async def test_what_was_committed_is_told_after_it(client: Client) -> None:
    told: list[tuple[State, State, str | None]] = []

    def committed(moves: list[StateChange]) -> None:
        told.extend((move.old, move.new, move.job.last_error) for move in moves)

    settlements = settlements_of(client, committed)
    failed = Raised(Failure("it", "Oops"))
    ends: list[tuple[Outcome, int]] = [(PLAIN, 3), (failed, 1), (failed, 3), (GivenBack(), 3)]
    for outcome, attempts in ends:
        settlements.add(await an_attempt(client, max_attempts=attempts), outcome)
    assert told == []
    await settlements.drain()

    assert told == [
        (State.RUNNING, State.SUCCEEDED, None),
        (State.RUNNING, State.DEAD, "Oops: it"),
        (State.RUNNING, State.SCHEDULED, "Oops: it"),
        (State.RUNNING, State.PENDING, None),
    ]


async def test_what_is_abandoned_is_left_to_its_lease(client: Client, counting: Counting) -> None:
    settlements = settlements_of(client)
    attempt = await an_attempt(client)
    counting.errors = [StoreUnavailable("away")] * 5
    settlements.add(attempt, PLAIN)
    await asyncio.sleep(0)

    assert settlements.abandon() == 1
    await settlements.drain()

    assert len(settlements) == 0
    job = await client.get(attempt.job.id)
    assert job is not None
    assert job.state is State.RUNNING
