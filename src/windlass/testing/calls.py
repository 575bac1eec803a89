"""The calls of a store, each with how the model explains its answer.

A call is made on the store first. The model is then asked whether it would have answered the same: alone, or, when
several calls were made together, in some order of them.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, permutations
from typing import Any

from windlass.core.errors import UniqueConflict
from windlass.core.ids import JobId
from windlass.core.job import Job, Note, PreparedJob, Token
from windlass.core.retention import Retention
from windlass.core.schedule import DueSchedules, Firing, Schedule
from windlass.core.states import State
from windlass.core.store import (
    ClaimRequest,
    KvWrite,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
    Store,
)
from windlass.core.verdict import ToDead, ToRetry
from windlass.testing.model import Model

Held = tuple[JobId, Token]


@dataclass(frozen=True)
class Call:
    """One call: how it is made, and whether the model gives the same answer, which changes the model."""

    name: str
    make: Callable[[Store], Awaitable[Any]]
    explain: Callable[[Model, Any], bool]
    holds: Collection[JobId] | None = ()
    """The jobs that it has in hand while it is under way; None when they can be any."""


def explanation(model: Model, calls: Sequence[Call], answers: Sequence[object]) -> list[Model]:
    """Return what the model knows after each order of `calls` that explains `answers`."""
    explained: list[Model] = []
    for order in permutations(zip(calls, answers, strict=True)):
        trial = model.copy()
        if all(_explain_beside(trial, call, answer, calls) for call, answer in order):
            trial.busy = frozenset()
            explained.append(trial)
    return explained


def _explain_beside(model: Model, call: Call, answer: object, calls: Sequence[Call]) -> bool:
    others = [other.holds for other in calls if other is not call]
    model.busy = frozenset(model.jobs if None in others else chain.from_iterable(filter(None, others)))
    return call.explain(model, answer)


def enqueue(jobs: Sequence[PreparedJob], request_id: str | None = None) -> Call:
    """Put jobs in line; a conflict is an answer like any other."""

    async def make(store: Store) -> object:
        try:
            return await store.enqueue(jobs, request_id=request_id)
        except UniqueConflict:
            return UniqueConflict

    def explain(model: Model, answer: object) -> bool:
        try:
            return model.enqueue(jobs) == answer
        except UniqueConflict:
            return answer is UniqueConflict

    return Call("enqueue", make, explain, _held_by_keys(jobs))


def claim(request: ClaimRequest, request_id: str | None = None) -> Call:
    """Claim; the answer is each job with the token that the store made for it."""

    async def make(store: Store) -> list[tuple[Job, Token]]:
        claims = await store.claim(request, request_id=request_id)
        return [(visible(claim.job), claim.token) for claim in claims]

    def explain(model: Model, answer: list[tuple[Job, Token]]) -> bool:
        expected = model.claim(request, [job.id for job, _ in answer])
        if [record.job.id for record in expected] != [job.id for job, _ in answer]:
            return False
        for record, (_, token) in zip(expected, answer, strict=True):
            model.give(record, token, request)
        return [visible(record.job) for record in expected] == [job for job, _ in answer]

    return Call("claim", make, explain, holds=None)


def settle(batch: Sequence[Settlement], request_id: str | None = None) -> Call:
    """Settle claims of any age; whoever decides on a retry has an attempt left, so a retry beyond it is no call."""

    async def make(store: Store) -> list[str]:
        return [_named(answer) for answer in await store.settle(batch, request_id=request_id)]

    def explain(model: Model, answer: list[str]) -> bool:
        return len(answer) == len(batch) and all(
            _named(model.settle(each)) == given or (given in _FORGOTTEN and each.token in model.gone)
            for each, given in zip(batch, answer, strict=True)
        )

    return Call("settle", make, explain, None if any(each.then for each in batch) else [each.job_id for each in batch])


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
    return Call(
        "cancel",
        lambda store: store.cancel(ids, retention),
        lambda model, answer: answer == [model.cancel(job_id, retention) for job_id in ids],
        ids,
    )


def retry(ids: Sequence[JobId]) -> Call:
    """Retry jobs in any state."""
    return Call(
        "retry",
        lambda store: store.retry(ids),
        lambda model, answer: answer == [model.retry(each) for each in ids],
        ids,
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
    return Call(
        "rescue",
        lambda store: store.rescue(request, retention),
        lambda model, answer: (
            sorted(answer) == sorted(model.rescue(request, retention, [rescued.id for rescued in answer]))
        ),
        holds=None,
    )


def kv_write(write: KvWrite) -> Call:
    """Write a value, with or without a condition."""
    return Call("kv_write", lambda store: store.kv_write(write), lambda model, answer: answer is model.kv_write(write))


def lock(name: str, holder: str, ttl: timedelta) -> Call:
    """Take, renew or fail to take a lock."""
    return Call(
        "lock",
        lambda store: store.lock(name, holder, ttl),
        lambda model, answer: answer is model.lock(name, holder, ttl),
    )


def unlock(name: str, holder: str) -> Call:
    """Let go of a lock that may be another's or over."""
    return Call(
        "unlock", lambda store: store.unlock(name, holder), lambda model, answer: answer is model.unlock(name, holder)
    )


def write_schedule(schedule: Schedule, expected: int | None) -> Call:
    """Write a schedule, with a revision of any age."""
    return Call(
        "write_schedule",
        lambda store: store.write_schedule(schedule, expected=expected),
        lambda model, answer: model.schedules.write(schedule, expected, answer),
    )


def remove_schedule(schedule_id: str) -> Call:
    """Remove a schedule that may not be there."""
    return Call(
        "remove_schedule",
        lambda store: store.remove_schedule(schedule_id),
        lambda model, answer: answer is model.schedules.remove(schedule_id),
    )


def due_schedules(declared: Collection[str], limit: int) -> Call:
    """Look which schedules are due."""

    def explain(model: Model, answer: DueSchedules) -> bool:
        return model.schedules.due(declared, limit, model.now) == answer

    return Call("due_schedules", lambda store: store.due_schedules(declared, limit=limit), explain)


def fire(firing: Firing) -> Call:
    """Fire a schedule, with a revision of any age; a conflict is an answer like any other."""

    async def make(store: Store) -> object:
        try:
            return await store.fire(firing)
        except UniqueConflict:
            return UniqueConflict

    def explain(model: Model, answer: object) -> bool:
        try:
            return model.fire(firing) == answer
        except UniqueConflict:
            return answer is UniqueConflict

    return Call("fire", make, explain, _held_by_keys(firing.jobs))


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


def _held_by_keys(jobs: Sequence[PreparedJob]) -> Collection[JobId] | None:
    """Return which jobs a call holds that brings these: those that have their keys may be any."""
    return None if any(job.unique is not None for job in jobs) else ()


def _named(answer: SettleResult) -> str:
    return answer.name if isinstance(answer, Settled) else type(answer).__name__
