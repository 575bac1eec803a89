from hypothesis import given
from hypothesis import strategies as st

from windlass.core.states import ENDS, MOVES, WAITING, State, may_move

states = st.sampled_from(State)


def test_the_three_ends_are_finished_and_nothing_else_is() -> None:
    assert {state for state in State if state.finished} == {State.SUCCEEDED, State.DEAD, State.CANCELLED} == ENDS


def test_scheduled_and_pending_jobs_wait_and_nothing_else_does() -> None:
    assert {state for state in State if state.waiting} == {State.SCHEDULED, State.PENDING} == WAITING


def test_only_a_retry_leads_out_of_an_end() -> None:
    out = {(move.by, move.old) for move in MOVES if move.old in ENDS}

    assert out == {("retry", State.DEAD), ("retry", State.CANCELLED)}


def test_only_a_claim_makes_a_job_run_and_only_from_pending() -> None:
    into = {(move.by, move.old) for move in MOVES if move.new is State.RUNNING}

    assert into == {("claim", State.PENDING)}


def test_a_job_begins_pending_or_scheduled() -> None:
    assert {move.new for move in MOVES if move.old is None} == WAITING


@given(old=states, new=states)
def test_a_move_may_be_made_if_and_only_if_it_is_in_the_table(old: State, new: State) -> None:
    assert may_move(old, new) == ((old, new) in {(move.old, move.new) for move in MOVES})


@given(start=states)
def test_every_state_that_is_no_end_leads_to_every_end(start: State) -> None:
    reached = {start}
    while more := {move.new for move in MOVES if move.old in reached} - reached:
        reached |= more

    assert start is State.SUCCEEDED or reached >= ENDS


@given(old=states)
def test_no_move_leaves_a_job_where_it_is(old: State) -> None:
    assert not may_move(old, old)
