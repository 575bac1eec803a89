"""A damaged job that a claim makes dead, on Postgres, goes through its steps too; so does one that others follow."""

from collections.abc import AsyncIterator

import pytest

from tests.steps.postgres_recorder import PostgresRecording, recorded_postgres
from tests.steps.recording import ENDS, STARTS_RUNNING, STOPS_RUNNING, Step
from windlass.core.states import State
from windlass.testing import FakeClock
from windlass.testing.conformance.given import a_job, claim_one, settlement, wanting


@pytest.fixture
async def recording() -> AsyncIterator[PostgresRecording]:
    async with recorded_postgres(FakeClock()) as recording:
        yield recording


async def test_a_job_that_a_claim_sets_aside_ends(recording: PostgresRecording) -> None:
    await recording.store.enqueue([a_job(kind="email")])
    recording.connection.execute("update windlass_job set codec = ''")
    await recording.steps()

    claimed = await recording.store.claim(wanting())

    assert not claimed.jobs
    assert await recording.steps() == [Step(ENDS, "default", "email", State.PENDING)]
    [stats] = await recording.store.stats()
    assert (stats.pending, stats.dead, stats.totals.dead) == (0, 1, 1)


async def test_a_claimed_job_that_does_not_decode_stops_and_ends(recording: PostgresRecording) -> None:
    await recording.store.enqueue([a_job(kind="email")])
    # a text that Postgres takes for an object of texts, and that no decoder does
    recording.connection.execute("""update windlass_job set headers = '{"a": "\\u12"}'""")
    await recording.steps()

    claimed = await recording.store.claim(wanting())

    assert not claimed.jobs
    assert [step.name for step in await recording.steps()] == [STARTS_RUNNING, STOPS_RUNNING, ENDS]
    [stats] = await recording.store.stats()
    assert (stats.running, stats.dead, stats.totals.dead) == (0, 1, 1)


@pytest.mark.parametrize("keep", [True, False])
async def test_a_success_of_a_followed_job_goes_through_its_steps_once(
    recording: PostgresRecording, *, keep: bool
) -> None:
    await recording.store.enqueue([a_job(kind="email")])
    claim = await claim_one(recording.store)
    recording.connection.execute("update windlass_job set has_followers = true")
    await recording.steps()

    await recording.store.settle([settlement(claim, keep=keep)])

    assert [(step.name, step.old) for step in await recording.steps()] == [
        (STOPS_RUNNING, State.RUNNING),
        (ENDS, State.RUNNING),
    ]
