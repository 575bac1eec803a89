from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.job_samples import BARE
from windlass.core.job import Failure, Job
from windlass.core.retry import Exponential, Fixed, NoRetry, RetryRule
from windlass.core.states import State
from windlass.core.verdict import (
    GaveUp,
    GivenBack,
    PutOff,
    Raised,
    Returned,
    Stopped,
    ToCancelled,
    ToDead,
    ToReleased,
    ToRetry,
    ToSnoozed,
    ToSucceeded,
    verdict,
)

BOOM = Failure("boom", "ValueError")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def a_job(*, attempt: int = 1, max_attempts: int = 3) -> Job:
    return BARE._replace(
        state=State.RUNNING, attempt=attempt, max_attempts=max_attempts, delivery=attempt, claimed_at=NOW,
        lease_expires_at=NOW,
    )  # fmt: skip


def test_work_that_was_done_succeeds_with_its_result() -> None:
    assert verdict(a_job(), Returned(b"42", "json"), retry=NoRetry(), draw=0) == ToSucceeded(b"42", "json")


def test_a_failed_attempt_is_retried_after_the_delay_of_the_policy() -> None:
    assert verdict(a_job(), Raised(BOOM), retry=Fixed(7), draw=0) == ToRetry(timedelta(seconds=7), BOOM)


def test_a_given_delay_wins_over_the_policy() -> None:
    outcome = Raised(BOOM, delay=SECOND)

    assert verdict(a_job(), outcome, retry=NoRetry(), draw=0) == ToRetry(SECOND, BOOM)


def test_a_policy_that_gives_up_makes_the_job_dead() -> None:
    assert verdict(a_job(), Raised(BOOM), retry=NoRetry(), draw=0) == ToDead(BOOM)


def test_a_policy_sees_the_exception() -> None:
    outcome = Raised(BOOM, error=ValueError("boom"))

    assert verdict(a_job(), outcome, retry=Fixed(1, give_up_on=(ValueError,)), draw=0) == ToDead(BOOM)


@pytest.mark.parametrize("delay", [None, SECOND])
@pytest.mark.parametrize("attempt", [3, 4])
def test_no_attempt_follows_the_last_one(attempt: int, delay: timedelta | None) -> None:
    job = a_job(attempt=attempt, max_attempts=3)

    assert verdict(job, Raised(BOOM, delay=delay), retry=Fixed(1), draw=0) == ToDead(BOOM)


def test_whoever_gives_up_makes_the_job_dead_although_attempts_are_left() -> None:
    assert verdict(a_job(), GaveUp(BOOM), retry=Fixed(1), draw=0) == ToDead(BOOM)


def test_a_job_that_is_put_off_is_snoozed() -> None:
    assert verdict(a_job(attempt=3), PutOff(SECOND), retry=NoRetry(), draw=0) == ToSnoozed(SECOND)


@pytest.mark.parametrize("started", [True, False])
def test_a_job_that_is_given_back_is_released(started: bool) -> None:  # noqa: FBT001 - a case of the table
    assert verdict(a_job(), GivenBack(started), retry=NoRetry(), draw=0) == ToReleased(started)


def test_a_job_that_is_stopped_is_cancelled_with_the_reason() -> None:
    assert verdict(a_job(), Stopped("not wanted"), retry=NoRetry(), draw=0) == ToCancelled("not wanted")


@given(
    attempt=st.integers(1, 100),
    max_attempts=st.integers(1, 100),
    draw=st.floats(0, 1),
    retry=st.sampled_from([Exponential(), Fixed(0), NoRetry()]),
)
def test_a_failed_attempt_is_retried_only_while_attempts_are_left(
    attempt: int, max_attempts: int, draw: float, retry: RetryRule
) -> None:
    decided = verdict(a_job(attempt=attempt, max_attempts=max_attempts), Raised(BOOM), retry=retry, draw=draw)

    assert isinstance(decided, ToDead) or (isinstance(decided, ToRetry) and attempt < max_attempts)
