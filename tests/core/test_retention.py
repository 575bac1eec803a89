from datetime import timedelta

import pytest

from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.states import ENDS, State

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    "state, kept",
    [
        (State.SUCCEEDED, timedelta(hours=24)),
        (State.DEAD, timedelta(days=7)),
        (State.CANCELLED, timedelta(hours=24)),
    ],
)
def test_an_end_is_kept_for_its_own_time(state: State, kept: timedelta) -> None:
    assert Keep().for_state(state) == kept


@pytest.mark.parametrize("state", [state for state in State if state not in ENDS])
def test_a_job_that_has_not_ended_is_kept_whatever_the_settings(state: State) -> None:
    nothing = timedelta(0)

    assert Keep(nothing, nothing, nothing).for_state(state) is None
    assert Retention(Keep(nothing, nothing, nothing)).keeps("email", state)


def test_what_a_single_queue_says_wins() -> None:
    retention = Retention(Keep(dead=HOUR), {"email": Keep(dead=None)})

    assert retention.keep("email").dead is None
    assert retention.keep("other").dead == HOUR


def test_a_retention_of_zero_keeps_no_record() -> None:
    retention = Retention(Keep(succeeded=timedelta(0)), {"email": Keep(succeeded=HOUR)})

    assert not retention.keeps("other", State.SUCCEEDED)
    assert retention.keeps("email", State.SUCCEEDED)
    assert retention.keeps("other", State.DEAD)


@pytest.mark.parametrize("state", State)
def test_keep_all_keeps_all_for_ever(state: State) -> None:
    assert KEEP_ALL.keep("email").for_state(state) is None
    assert KEEP_ALL.keeps("email", state)
