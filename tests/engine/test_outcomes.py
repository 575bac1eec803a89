import asyncio
from datetime import timedelta

import pytest

from tests.engine.executors.given import a_job
from windlass.core.signals import Cancel, PermanentFailure, Release, Retry, Snooze
from windlass.core.verdict import GaveUp, GivenBack, Outcome, PutOff, Raised, Returned, Stopped
from windlass.engine.outcomes import CANCELLED_ON_REQUEST, if_flagged, killed_for, outcome_of

SECOND = timedelta(seconds=1)


def outcome(error: BaseException, reason: str | None = None) -> Outcome:
    return outcome_of(error, job=a_job(), reason=reason, timeout=SECOND)


def test_each_signal_has_its_own_end() -> None:
    assert outcome(Snooze(5)) == PutOff(5 * SECOND)
    assert outcome(Release()) == GivenBack(started=True)
    assert outcome(Cancel("enough")) == Stopped("enough")
    assert isinstance(outcome(PermanentFailure("never")), GaveUp)
    retried = outcome(Retry("again", after=7))
    assert isinstance(retried, Raised)
    assert (retried.failure.message, retried.delay) == ("again", 7 * SECOND)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
def test_whatever_else_is_raised_is_a_failure(error: BaseException) -> None:
    ended = outcome(error)

    assert isinstance(ended, Raised)
    assert (ended.failure.type, ended.error, ended.delay) == (type(error).__name__, error, None)


def test_a_cancellation_means_what_it_was_for() -> None:
    assert outcome(asyncio.CancelledError(), "stop") == GivenBack(started=True)
    late = outcome(asyncio.CancelledError(), "timeout")
    assert isinstance(late, Raised)
    assert late.failure.summary == "Timeout: the attempt ran longer than its timeout of 0:00:01"
    assert isinstance(outcome(asyncio.CancelledError(), "claim_lost"), Raised)


def test_a_cancel_during_a_stop_is_a_release_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert outcome(Cancel(), "stop") == GivenBack(started=True)
    assert "raised Cancel while its server stops" in caplog.text
    assert a_job().id in caplog.text


def test_a_signal_that_somebody_spoiled_is_a_failure() -> None:
    spoiled = Snooze(1)
    spoiled.delay = timedelta(-1)

    ended = outcome(spoiled)

    assert isinstance(ended, Raised)
    assert ended.failure.type == "InvalidValue"


def test_only_a_success_of_a_flagged_attempt_stays_what_it_is() -> None:
    assert if_flagged(Returned(b"1", "json")) == Returned(b"1", "json")
    assert if_flagged(Stopped("enough")) == Stopped("enough")
    for ended in (GivenBack(), PutOff(SECOND), outcome(ValueError())):
        assert if_flagged(ended) == Stopped(CANCELLED_ON_REQUEST)


def test_a_child_that_its_server_killed_ended_for_that_reason() -> None:
    assert killed_for("stop", SECOND) == GivenBack(started=True)
    assert isinstance(killed_for("timeout", SECOND), Raised)
    assert killed_for("cancel", SECOND) is None
    assert killed_for(None, SECOND) is None
