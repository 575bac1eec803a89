"""Every change of a job's state goes through the four steps, on every store."""

import pytest

from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Recording
from tests.steps.transitions import KIND, QUEUE, TRANSITIONS, Scene, Transition
from windlass.core.filters import JobFilter
from windlass.core.states import MOVES, State
from windlass.testing import FakeClock


def _name_of(transition: Transition) -> str:
    old, new = transition.old or "none", transition.new or "none"
    return f"{transition.by}: {old} to {new}, {transition.given.__name__}"


@pytest.mark.parametrize("transition", TRANSITIONS, ids=_name_of)
async def test_a_change_of_state_goes_through_its_steps(
    recording: Recording, clock: FakeClock, transition: Transition
) -> None:
    scene = Scene(recording.store, clock)
    await transition.given(scene)
    await recording.steps()

    await transition.act(scene)

    steps = [step for step in await recording.steps() if step.kind == KIND]
    assert tuple(step.name for step in steps) == transition.steps
    assert {step.queue for step in steps} <= {QUEUE}
    assert not steps or steps[0].old is transition.old
    jobs = await recording.store.jobs(JobFilter(queue=QUEUE, kind=KIND), after=None, limit=9)
    assert transition.new in {job.state for job in jobs} or not (jobs or transition.new)


def test_every_move_of_a_job_is_among_the_transitions() -> None:
    shown = {(each.by, each.old, each.new) for each in TRANSITIONS}

    assert {tuple(move) for move in MOVES} <= shown


def test_each_step_is_what_its_name_says() -> None:
    for each in TRANSITIONS:
        assert (STARTS_RUNNING in each.steps) == (each.by == "claim")
        assert (STOPS_RUNNING in each.steps) == (each.old is State.RUNNING and each.new is not State.RUNNING)
        if each.steps:
            assert (ENDS in each.steps) == (each.new not in {State.PENDING, State.SCHEDULED, State.RUNNING})
            assert (each.steps[-1] == STARTS_WAITING) == (each.new in {State.PENDING, State.SCHEDULED})
