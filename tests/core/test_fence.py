from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import failpoint
from windlass.core.fence import refusal
from windlass.core.job import Token
from windlass.core.requests import Settled
from windlass.core.states import State

MINE, OTHER = Token("mine"), Token("other")
not_running = st.sampled_from([state for state in State if state is not State.RUNNING])


@pytest.fixture
def unfenced() -> Iterator[None]:
    failpoint.remove("fence")
    yield
    failpoint.restore()


def test_the_token_that_a_running_job_keeps_settles_it() -> None:
    assert refusal(State.RUNNING, MINE, "mine") is None


def test_another_token_does_not_settle_a_running_job() -> None:
    assert refusal(State.RUNNING, OTHER, "mine") is Settled.LOST


@given(state=not_running)
def test_the_token_that_settled_a_job_is_told_so_whatever_became_of_it(state: State) -> None:
    assert refusal(state, MINE, "mine") is Settled.REPEATED


@given(state=not_running, kept=st.sampled_from([OTHER, None]))
def test_any_other_token_is_lost_on_a_job_that_does_not_run(state: State, kept: Token | None) -> None:
    assert refusal(state, kept, "mine") is Settled.LOST


@pytest.mark.usefixtures("unfenced")
def test_without_the_fence_any_token_settles_a_running_job() -> None:
    assert refusal(State.RUNNING, OTHER, "mine") is None


@pytest.mark.usefixtures("unfenced")
def test_without_the_fence_a_job_that_does_not_run_is_settled_by_nobody() -> None:
    assert refusal(State.SUCCEEDED, MINE, "mine") is Settled.REPEATED
    assert refusal(State.SUCCEEDED, OTHER, "mine") is Settled.LOST
