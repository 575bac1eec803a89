"""Which answers to calls that were made together some order of their steps explains, and which none does."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import pytest

from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Failure, PreparedJob, Token
from windlass.core.requests import CancelOutcome, Changed, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.verdict import ToDead, ToSucceeded, Verdict
from windlass.testing import calls
from windlass.testing.call import Call
from windlass.testing.conformance.given import a_job, wanting
from windlass.testing.model import Model
from windlass.testing.orders import explained

DEAD: Final = ToDead(Failure("no"))


@pytest.fixture(params=[True, False], ids=["over all queues", "within one queue"])
def model(request: pytest.FixtureRequest) -> Model:
    """A model of a store that is atomic this far."""
    return Model(datetime(2026, 1, 5, 9, tzinfo=UTC), request.param)


def named(model: Model, *jobs: PreparedJob) -> list[PreparedJob]:
    """Tell the model where jobs will be."""
    model.homes.update((job.id, job.queue) for job in jobs)
    return list(jobs)


def running(model: Model, *jobs: PreparedJob) -> list[JobId]:
    """Let jobs run, each with its id as its token."""
    request = wanting(limit=len(jobs))
    model.enqueue(named(model, *jobs))
    for record in model.claim(request, ()):
        model.give(record, Token(record.job.id), request)
    return [job.id for job in jobs]


def ending(job_id: JobId, verdict: Verdict, then: Sequence[PreparedJob] = ()) -> Settlement:
    return Settlement(job_id, Token(job_id), verdict, then=then)


def states_after(model: Model, answers: Sequence[tuple[Call, object]]) -> set[tuple[State, ...]]:
    """Return where all jobs may stand after calls that were made together, and answered so."""
    after = explained(model, [call for call, _ in answers], [answer for _, answer in answers])
    return {tuple(record.job.state for record in each.jobs.values()) for each in after}


def test_one_job_may_have_ended_and_its_follower_not_been_there_when_both_were_retried(model: Model) -> None:
    [parent] = running(model, a_job())
    [follower] = named(model, a_job())
    settle, retry = calls.settle([ending(parent, DEAD, [follower])]), calls.retry([parent, follower.id])

    states = states_after(model, [(settle, ["DONE"]), (retry, [Changed.DONE, Changed.NOT_FOUND])])

    assert states == {(State.PENDING, State.PENDING)}


def test_jobs_that_are_settled_together_may_be_cancelled_between_their_ends(model: Model) -> None:
    one, other = running(model, a_job(), a_job())
    settle = calls.settle([ending(one, ToSucceeded()), ending(other, DEAD)])
    cancel = calls.cancel([one, other], KEEP_ALL)

    states = states_after(
        model, [(settle, ["DONE", "DONE"]), (cancel, [CancelOutcome.NOT_FOUND, CancelOutcome.REQUESTED])]
    )

    assert states == {(State.SUCCEEDED, State.DEAD)}


def test_each_answer_about_a_job_is_that_of_some_moment(model: Model) -> None:
    [job] = running(model, a_job())
    settle, retry = calls.settle([ending(job, DEAD)]), calls.retry([job])

    assert states_after(model, [(settle, ["DONE"]), (retry, [Changed.DONE])]) == {(State.PENDING,)}
    assert states_after(model, [(settle, ["DONE"]), (retry, [Changed.WRONG_STATE])]) == {(State.DEAD,)}
    assert not states_after(model, [(settle, ["DONE"]), (retry, [Changed.NOT_FOUND])])
    assert not states_after(model, [(settle, ["LOST"]), (retry, [Changed.DONE])])


def test_a_job_that_is_named_twice_by_one_call_is_answered_in_that_order(model: Model) -> None:
    [job] = running(model, a_job())
    settle, retry = calls.settle([ending(job, DEAD)]), calls.retry([job, job])

    assert states_after(model, [(settle, ["DONE"]), (retry, [Changed.DONE, Changed.WRONG_STATE])])
    # the settlement after both; never between them
    assert states_after(model, [(settle, ["DONE"]), (retry, [Changed.WRONG_STATE, Changed.WRONG_STATE])])
    assert not states_after(model, [(settle, ["DONE"]), (retry, [Changed.WRONG_STATE, Changed.DONE])])


def test_as_many_jobs_are_answered_as_were_asked_for(model: Model) -> None:
    [job] = running(model, a_job())

    assert not states_after(model, [(calls.retry([job, job]), [Changed.WRONG_STATE])])


def test_a_claim_finds_a_whole_batch_or_nothing_of_it(model: Model) -> None:
    batch = named(model, a_job(), a_job())
    enqueue, claim = calls.enqueue(batch), calls.claim(wanting(limit=2))
    created = [Enqueued(job.id, created=True) for job in batch]
    ahead = model.copy()
    running(ahead, *batch)
    given = [(calls.visible(record.job), Token(record.job.id)) for record in ahead.jobs.values()]

    assert states_after(model, [(enqueue, created), (claim, [])]) == {(State.PENDING, State.PENDING)}
    assert states_after(model, [(enqueue, created), (claim, given)]) == {(State.RUNNING, State.RUNNING)}
    assert not states_after(model, [(enqueue, created), (claim, given[:1])])
    assert not states_after(model, [(enqueue, created), (claim, given[::-1])])
