"""The calls of a store that are about jobs, each with how the model explains its answer.

A call is made on the store first. The model is then asked whether it would have answered the same: alone, or, when
several calls were made together, in some order of them.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from windlass.core.errors import NotAtomicHere
from windlass.core.ids import JobId
from windlass.core.job import Job, Note, PreparedJob, Token
from windlass.core.requests import ClaimRequest, KvWrite, Rescued, RescueRequest, Settled, Settlement, SettleResult
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToDead, ToRetry
from windlass.testing.call import NEVER, Call, Step, agrees, answered, job_by_job
from windlass.testing.model import Model

Held = tuple[JobId, Token]
Given = tuple[Job, Token]


def enqueue(jobs: Sequence[PreparedJob], request_id: str | None = None) -> Call:
    """Put jobs in line; a refusal is an answer like any other."""
    return Call(
        "enqueue",
        lambda store: answered(store.enqueue(jobs, request_id=request_id)),
        lambda model, answer: agrees(lambda: model.enqueue(jobs) == answer, answer),
        held_by_keys(jobs),
    )


def claim(request: ClaimRequest, request_id: str | None = None) -> Call:
    """Claim; the answer is each job with the token that the store made for it."""

    async def make(store: Store) -> object:
        claimed = await answered(store.claim(request, request_id=request_id))
        return claimed if claimed is NotAtomicHere else [(visible(claim.job), claim.token) for claim in claimed.jobs]

    def explain(model: Model, answer: Any) -> bool:  # noqa: ANN401 - claims or a refusal
        return agrees(lambda: _gives(model, request, answer), answer)

    def in_queue(asked: ClaimRequest, given: Sequence[Given]) -> Step:
        return Step(lambda model: _gives(model, asked, given), asked.queues[0])

    def parts(model: Model, answer: Any) -> list[Step]:  # noqa: ANN401 - claims or a refusal
        if model.atomic_across_queues or answer is NotAtomicHere:
            return [Step(lambda trial: explain(trial, answer))]
        places = list(dict.fromkeys(request.queues))
        if sorted(answer, key=lambda pair: places.index(pair[0].queue)) != answer:
            return [NEVER]
        steps: list[Step] = []
        left = request.limit
        for queue in places:
            given = [pair for pair in answer if pair[0].queue == queue]
            steps.append(in_queue(request._replace(queues=[queue], limit=left), given))
            left -= len(given)
        return steps

    return Call("claim", make, explain, None, parts)


def _gives(model: Model, request: ClaimRequest, given: Sequence[Given] | type[NotAtomicHere]) -> bool:
    """Whether the model gives these jobs, each of which then has its token."""
    pairs = () if isinstance(given, type) else given
    expected = model.claim(request, [job.id for job, _ in pairs])
    if isinstance(given, type) or [record.job.id for record in expected] != [job.id for job, _ in pairs]:
        return False
    for record, (_, token) in zip(expected, pairs, strict=True):
        model.give(record, token, request)
    return [visible(record.job) for record in expected] == [job for job, _ in pairs]


def settle(batch: Sequence[Settlement], request_id: str | None = None) -> Call:
    """Settle claims of any age; whoever decides on a retry has an attempt left, so a retry beyond it is no call."""

    async def make(store: Store) -> list[str]:
        return [_named(answer) for answer in await store.settle(batch, request_id=request_id)]

    def settled(model: Model, each: Settlement, given: str) -> bool:
        return _named(model.settle(each)) == given or (given in _FORGOTTEN and each.token in model.gone)

    asked = [(each.job_id, each) for each in batch]
    holds = None if any(each.then for each in batch) else [each.job_id for each in batch]
    return job_by_job("settle", make, asked, settled, holds=holds)


# whoever deleted the record may or may not remember the token that settled it
_FORGOTTEN = {"LOST", "REPEATED"}


def within_attempts(model: Model, settlement: Settlement) -> Settlement:
    """Return `settlement` as a client decides it: dead instead of a retry when no attempt is left."""
    record, verdict = model.jobs.get(settlement.job_id), settlement.verdict
    if not isinstance(verdict, ToRetry):
        return settlement
    if record is not None and record.job.attempt >= record.job.max_attempts:
        return settlement._replace(verdict=ToDead(verdict.failure))
    # what is meant for the end of the job is left out
    return settlement._replace(then=(), kv=None)


def renew(held: Sequence[Held], lease: timedelta) -> Call:
    """Renew claims of any age."""

    def explain(model: Model, answer: Sequence[tuple[datetime, bool] | None]) -> bool:
        return len(answer) == len(held) and all(
            _renewed(model, job_id, token, lease) == given for (job_id, token), given in zip(held, answer, strict=True)
        )

    return Call("renew", lambda store: store.renew(held, lease), explain)


def note(written: Note) -> Call:
    """Report with a claim of any age."""
    return Call("note", lambda store: store.note([written]), lambda model, answer: answer == [model.note(written)])


def cancel(ids: Sequence[JobId], retention: Retention) -> Call:
    """Cancel jobs in any state."""
    return job_by_job(
        "cancel",
        lambda store: store.cancel(ids, retention),
        [(job_id, job_id) for job_id in ids],
        lambda model, job_id, answer: answer is model.cancel(job_id, retention),
        holds=ids,
    )


def retry(ids: Sequence[JobId]) -> Call:
    """Retry jobs in any state."""
    return job_by_job(
        "retry",
        lambda store: store.retry(ids),
        [(job_id, job_id) for job_id in ids],
        lambda model, job_id, answer: answer is model.retry(job_id),
        holds=ids,
    )


def delete(ids: Sequence[JobId]) -> Call:
    """Delete jobs in any state."""
    return Call(
        "delete", lambda store: store.delete(ids), lambda model, answer: answer == [model.delete(each) for each in ids]
    )


def reschedule(job_id: JobId, run_at: datetime | None) -> Call:
    """Give a job another time."""
    return Call(
        "reschedule",
        lambda store: store.reschedule([job_id], run_at),
        lambda model, answer: answer == [model.reschedule(job_id, run_at)],
    )


def pause(queue: str, *, paused: bool) -> Call:
    """Pause or resume a queue, known or not."""

    def explain(model: Model, answer: object) -> bool:
        model.paused[queue] = paused
        return answer is None

    return Call("pause", lambda store: store.set_paused(queue, paused=paused), explain)


def rescue(request: RescueRequest, retention: Retention) -> Call:
    """Take back claims."""

    def rescued(model: Model, asked: RescueRequest, answer: Sequence[Rescued]) -> bool:
        return sorted(answer) == sorted(model.rescue(asked, retention, [each.id for each in answer]))

    def in_queue(queue: str, own: Sequence[Rescued]) -> Step:
        return Step(lambda model: rescued(model, request._replace(queues=[queue]), own), queue)

    def parts(model: Model, answer: Sequence[Rescued]) -> list[Step]:
        if model.atomic_across_queues:
            return [Step(lambda trial: rescued(trial, request, answer))]
        asked = set(model.homes.values()) if request.queues is None else set(request.queues)
        own = {queue: [each for each in answer if model.homes[each.id] == queue] for queue in asked}
        if sum(map(len, own.values())) != len(answer):
            return [NEVER]
        return [in_queue(queue, some) for queue, some in own.items()]

    return Call(
        "rescue",
        lambda store: store.rescue(request, retention),
        lambda model, answer: rescued(model, request, answer),
        holds=None,
        parts=parts,
    )


def kv_write(write: KvWrite) -> Call:
    """Write a value, with or without a condition."""
    return Call("kv_write", lambda store: store.kv_write(write), lambda model, answer: answer is model.kv.write(write))


def lock(name: str, holder: str, ttl: timedelta) -> Call:
    """Take, renew or fail to take a lock."""
    return Call(
        "lock",
        lambda store: store.lock(name, holder, ttl),
        lambda model, answer: answer is model.kv.lock(name, holder, ttl, model.now),
    )


def unlock(name: str, holder: str) -> Call:
    """Let go of a lock that may be another's or over."""
    return Call(
        "unlock",
        lambda store: store.unlock(name, holder),
        lambda model, answer: answer is model.kv.unlock(name, holder, model.now),
    )


def visible(job: Job) -> Job:
    """Leave out what is the store's own (the sequence number) and what only `get` fills."""
    return job._replace(seq=0, headers=dict(job.headers), history=(), log=())


def in_full(job: Job, now: datetime) -> Job:
    """Leave out what is the store's own; a job that is due counts as pending, since a claim may be what promotes it."""
    # why a delivery was rescued or cancelled is told by the job's last error
    history = tuple(each if each.outcome == "failed" else each._replace(failure=None) for each in job.history)
    due = job.state is State.SCHEDULED and job.run_at <= now
    return job._replace(seq=0, headers=dict(job.headers), history=history, state=State.PENDING if due else job.state)


def _renewed(model: Model, job_id: JobId, token: Token, lease: timedelta) -> tuple[datetime | None, bool] | None:
    if not model.renew(job_id, token, lease):
        return None
    job = model.jobs[job_id].job
    return job.lease_expires_at, job.cancel_requested


def held_by_keys(jobs: Sequence[PreparedJob]) -> Collection[JobId] | None:
    """Return which jobs a call holds that brings these: those that have their keys may be any."""
    return None if any(job.unique is not None for job in jobs) else ()


def _named(answer: SettleResult) -> str:
    return answer.name if isinstance(answer, Settled) else type(answer).__name__
