"""What people do to jobs: cancel, retry, delete, reschedule, pause."""

from collections.abc import Collection, Mapping, Sequence

from windlass.core import commands
from windlass.core.ids import JobId
from windlass.core.queue_settings import fields_of
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.retention import Retention
from windlass.core.states import ENDS as FINISHED
from windlass.core.states import WAITING, State
from windlass.core.topics import FLAGS, PAUSES
from windlass.kit.records import STATES
from windlass.stores.postgres.moves import delivery_ends, holds, steps
from windlass.stores.postgres.rows import Standing, json_text
from windlass.stores.postgres.work import CANCELLED, Changes, Statement, Work, run


def cancel(changes: Changes, command: commands.CancelJobs) -> Work[list[CancelOutcome]]:
    """End waiting jobs and flag running ones."""
    jobs = yield from _standing(command.ids)
    yield from _flag(changes, [job for job in jobs.values() if job.state is State.RUNNING])
    yield from _end(changes, [job for job in jobs.values() if job.state.waiting], command.retention)
    outcomes: list[CancelOutcome] = []
    for job_id in command.ids:
        outcomes.append(_outcome(jobs.get(job_id)))
        if outcomes[-1] is CancelOutcome.REMOVED:
            # the second mention of it finds it cancelled
            del jobs[job_id]
    return outcomes


def retry(changes: Changes, command: commands.RetryJobs) -> Work[list[Changed]]:
    """Give dead and cancelled jobs a new life."""
    ids = command.ids
    jobs = yield from _standing(ids)
    chosen = [job for job in jobs.values() if job.state in (State.DEAD, State.CANCELLED)]
    refused = yield from holds.take_again(changes, chosen)
    taken = [job for job in chosen if job.id not in refused]
    if taken:
        parameters = {"now": changes.now, "seqs": [job.seq for job in taken]}
        yield Statement("note_retry", parameters)
        yield from steps.starts_waiting(changes, taken, run(Statement("retry", parameters)))
    for job in taken:
        changes.moved(job.queue, job.state, State.PENDING)
    answers = _answers(ids, jobs, taken, again=Changed.WRONG_STATE)
    return [Changed.KEY_HELD if job_id in refused else answer for job_id, answer in zip(ids, answers, strict=True)]


def delete(changes: Changes, command: commands.DeleteJobs) -> Work[list[Changed]]:
    """Delete finished jobs."""
    jobs = yield from _standing(command.ids)
    chosen = [job for job in jobs.values() if job.state in FINISHED]
    yield from delivery_ends.forget([job.seq for job in chosen])
    for job in chosen:
        changes.moved(job.queue, job.state, None)
    return _answers(command.ids, jobs, chosen, again=Changed.NOT_FOUND)


def reschedule(changes: Changes, command: commands.RescheduleJobs) -> Work[list[Changed]]:
    """Give waiting jobs another time."""
    jobs = yield from _standing(command.ids)
    chosen = [job for job in jobs.values() if job.state in WAITING]
    if chosen:
        parameters = {"now": changes.now, "run_at": command.run_at, "seqs": [job.seq for job in chosen]}
        rows = yield from steps.starts_waiting(changes, chosen, run(Statement("reschedule", parameters)))
        states = {job_id: STATES[state] for job_id, state in rows}
        for job in chosen:
            changes.moved(job.queue, job.state, states[job.id])
    return _answers(command.ids, jobs, chosen, again=Changed.DONE)


def set_queue_settings(changes: Changes, command: commands.SetQueueSettings) -> Work[None]:
    """Set settings of a queue; a pause holds once this is committed and `barrier` has passed."""
    fields = fields_of(command.settings)
    if not fields:
        return
    parameters = {"queue": command.queue, "layer": command.layer, "settings": json_text(fields)}
    yield Statement("set_queue_settings", parameters)
    if command.settings.paused:
        changes.topics.add(PAUSES)
    elif command.settings.paused is not None:
        changes.ready(command.queue)


def barrier() -> Work[None]:
    """Wait for the claims that began before; a transaction of its own, after that of the pause."""
    yield Statement("gate")


def _standing(ids: Sequence[JobId]) -> Work[dict[JobId, Standing]]:
    rows = yield Statement("standing", {"ids": sorted(set(ids)), "lock_timeout": None})
    jobs = sorted((Standing(*row) for row in rows), key=lambda job: job.seq)
    return {job.id: job for job in jobs}


def _flag(changes: Changes, running: Sequence[Standing]) -> Work[None]:
    if running:
        yield Statement("flag", {"seqs": [job.seq for job in running]})
        changes.topics.add(FLAGS)


def _end(changes: Changes, waiting: Sequence[Standing], retention: Retention) -> Work[None]:
    if not waiting:
        return
    yield from holds.free_at_end([job for job in waiting if job.unique_key is not None])
    kept = [job for job in waiting if retention.keeps(job.queue, State.CANCELLED)]
    staying = {job.seq for job in kept}
    going = [job.seq for job in waiting if job.seq not in staying]
    yield from steps.ends(changes, waiting, _cancel(changes, [job.seq for job in kept], going))
    for job in waiting:
        changes.moved(job.queue, job.state, State.CANCELLED if job.seq in staying else None)
        changes.happened(job.queue, job.kind, CANCELLED)


def _cancel(changes: Changes, kept: Sequence[int], going: Sequence[int]) -> Work[None]:
    if kept:
        yield Statement("cancel", {"now": changes.now, "seqs": kept})
    yield from delivery_ends.forget(going)


def _outcome(job: Standing | None) -> CancelOutcome:
    if job is None or job.state.finished:
        return CancelOutcome.NOT_FOUND
    return CancelOutcome.REQUESTED if job.state is State.RUNNING else CancelOutcome.REMOVED


def _answers(
    ids: Sequence[JobId], jobs: Mapping[JobId, Standing], changed: Collection[Standing], *, again: Changed
) -> list[Changed]:
    """Return what became of each job; `again` is how the second mention of one that was changed finds it."""
    left = {job.id: Changed.DONE for job in changed}
    answers: list[Changed] = []
    for job_id in ids:
        refusal = Changed.WRONG_STATE if job_id in jobs else Changed.NOT_FOUND
        answers.append(left.get(job_id, refusal))
        if job_id in left:
            left[job_id] = again
    return answers
