"""Jobs: put in line, looked at, waited for and steered."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from windlass.api import calls, job_calls, operations
from windlass.api.jobs import Enqueued, Job, NewJob
from windlass.api.looks import Chosen, DeadAsked, DeadJobs, Glance, JobIds, Jobs, Listing, NewestAsked, Place
from windlass.api.reasons import Reason, Why, facts_of
from windlass.api.roles import Role
from windlass.client.bell import answer
from windlass.client.operations import DELETE, RETRY, Operation
from windlass.client.why import why as look_why
from windlass.config.masked import HIDDEN
from windlass.core import job as core
from windlass.core import looks as seam
from windlass.core.errors import InvalidValue, JobNotFound, WindlassError
from windlass.core.ids import JobId, job_id
from windlass.core.names import check_name
from windlass.core.requests import CancelOutcome
from windlass.http.audit import write_down_jobs
from windlass.http.bulk import change_matching
from windlass.http.call import Call, Handled
from windlass.http.job_pages import read_dead, read_jobs, read_newest, size_of, size_of_all
from windlass.http.new_jobs import check_origin, prepared_jobs
from windlass.http.payload_reading import LARGEST_PAGE
from windlass.http.refusal import Refusal, refuse_beyond
from windlass.http.replies import another_call
from windlass.http.reply import problem_from
from windlass.http.seen_payloads import jobs_seen, newest_seen
from windlass.http.shared import Stopping
from windlass.http.shown import reads_payloads, shown


async def enqueue(call: Call[job_calls.EnqueueAsked]) -> job_calls.EnqueueTold:
    """Put jobs in line, all or none."""
    return job_calls.EnqueueTold(jobs=await _enqueued(call, call.asked.jobs, call.request_id))


async def enqueue_batches(call: Call[job_calls.BatchesAsked]) -> job_calls.BatchesTold:
    """Put several batches in line, each whole or not at all."""
    name = call.request_id
    # all at once and in their order: a store may put into one commit what comes together
    batches = await asyncio.gather(
        *(_batch(call, jobs, None if name is None else f"{name}#{n}") for n, jobs in enumerate(call.asked.batches))
    )
    return job_calls.BatchesTold(batches=batches)


async def _batch(call: Call[Any], jobs: Sequence[NewJob], request_id: str | None) -> job_calls.Batch:
    try:
        return job_calls.Batch(jobs=await _enqueued(call, jobs, request_id))
    except (WindlassError, Refusal) as error:
        return job_calls.Batch(problem=problem_from(error))


async def _enqueued(call: Call[Any], jobs: Sequence[NewJob], request_id: str | None) -> list[Enqueued]:
    prepared = prepared_jobs(call.client.preparer, jobs)
    if not prepared:
        return []
    check_origin(call.identity, prepared)
    done = await call.store.enqueue(prepared, request_id=request_id)
    if len(done) != len(prepared):
        raise another_call()
    return [Enqueued(id=each.id, created=each.created) for each in done]


async def glance(call: Call[JobIds]) -> job_calls.GlanceTold:
    """Tell where jobs stand; the token of a claim is a secret of those who work."""
    seen = await call.store.glance([job_id(each) for each in call.asked.ids])
    works = not call.identity.roles.isdisjoint((Role.WORK, Role.ADMIN))

    def stands(found: seam.Glance) -> Glance:
        token = found.token if works else None
        return Glance(state=found.state, cancel_requested=found.cancel_requested, token=token)

    return job_calls.GlanceTold(jobs={each: stands(found) for each, found in seen.items()})


async def get(call: Call[job_calls.GetAsked]) -> job_calls.GetTold:
    """Return jobs by their ids."""
    await call.reading.begin()
    found = await call.store.get([job_id(each) for each in call.asked.ids])
    known = iter(await _shown(call, [job for job in found if job is not None], call.asked.payload))
    return job_calls.GetTold(jobs=[None if job is None else next(known) for job in found])


async def _shown(call: Call[Any], found: Sequence[core.Job], payload: str) -> list[Job]:
    """Return jobs as they are told; all are read by now."""
    call.reading.size = size_of_all(found)
    call.reading.done_reading()
    as_bytes = payload == "base64"
    return await call.reading.each(found, size_of, lambda job: shown(job, call.identity, as_bytes=as_bytes))


async def jobs(call: Call[Listing]) -> Jobs:
    """Return a page of jobs."""
    asked = call.asked
    await call.reading.begin()
    look = jobs_seen if _looks_through_a_mask(call, asked) else read_jobs
    page, more = await look(call.store, asked.filter(), after=asked.after, limit=asked.limit, reading=call.reading)
    return await _told(call, page, more, asked.payload)


def _looks_through_a_mask(call: Call[Any], chosen: Chosen) -> bool:
    """Whether a text is looked for in payloads by somebody who must not find out what is secret in them."""
    return chosen.payload_text is not None and not reads_payloads(call.identity)


async def newest(call: Call[NewestAsked]) -> Jobs:
    """Return a page of jobs, the newest first."""
    asked = call.asked
    await call.reading.begin()
    look = newest_seen if _looks_through_a_mask(call, asked) else read_newest
    page = await look(
        call.store, asked.filter(), before=asked.before, limit=asked.limit, most=asked.most, reading=call.reading
    )
    return await _told(call, page.jobs, page.next, asked.payload)


async def _told(call: Call[Any], page: Sequence[core.Job], more: int | None, payload: str) -> Jobs:
    fitting = _fitting(page)
    more = fitting[-1].seq if len(fitting) < len(page) else more
    return Jobs(jobs=await _shown(call, fitting, payload), next=more)


async def dead(call: Call[DeadAsked]) -> DeadJobs:
    """Return a page of dead jobs, the last to die first."""
    asked = call.asked
    before = None if asked.before is None else seam.Death.read(asked.before)
    queue = None if asked.queue is None else check_name(asked.queue, "queue")
    await call.reading.begin()
    page, more = await read_dead(call.store, queue, before=before, limit=asked.limit, reading=call.reading)
    fitting = _fitting([each.job for each in page])
    cursors = [str(each.death) for each in page[: len(fitting)]]
    more = more or len(fitting) < len(page)
    jobs = await _shown(call, fitting, asked.payload)
    return DeadJobs(jobs=jobs, cursors=cursors, next=cursors[-1] if more else None)


def _fitting(page: Sequence[core.Job]) -> Sequence[core.Job]:
    """Return as many of the first jobs as one reply has room for, but one at least."""
    size = 0
    for number, each in enumerate(page):
        size += len(each.payload) + len(each.result or b"")
        if size > LARGEST_PAGE and number:
            return page[:number]
    return page


async def job(call: Call[job_calls.JobAsked]) -> Job:
    """Return one job, with its history and log."""
    await call.reading.begin()
    [found] = await call.store.get((call.job_id,))
    if found is None:
        raise JobNotFound(call.job_id)
    [told] = await _shown(call, [found], call.asked.payload)
    return told


async def place(call: Call[calls.Nothing]) -> Place:
    """Tell what stands between a job and its claim."""
    found = await call.store.place(call.job_id)
    if found is None:
        raise JobNotFound(call.job_id)
    return Place(now=found.now, ahead=found.ahead, key_holder=found.key_holder)


async def why(call: Call[calls.Nothing]) -> Why:
    """Tell why a job stands where it stands; who did something to it is told to those who may see the audit."""
    if call.identity.queues is not None:
        # servers of other queues as well are not seen by it: it would be told that nobody works
        refuse_beyond("why a job waits")
    audit = not call.identity.roles.isdisjoint((Role.OPERATE, Role.ADMIN))
    found = await look_why(call.store, call.job_id, audit=audit)
    if found.job is None:
        raise JobNotFound(call.job_id)
    return Why(
        id=found.id,
        now=found.now,
        state=found.job.state,
        reasons=[
            Reason(name=each.name, message=each.message, advice=each.advice, facts=facts_of(each.facts))
            for each in found.reasons
        ],
    )


async def wait(call: Call[job_calls.WaitAsked]) -> job_calls.Waited:
    """Wait for the end of a job."""
    wanted = call.job_id
    if call.job_id not in await call.store.glance((wanted,)):
        return job_calls.Waited(outcome="not_found")
    if not await call.while_here(_ends_in_time(call, wanted)):
        return job_calls.Waited(outcome="timed_out")
    await call.reading.begin()
    [found] = await call.store.get((wanted,))
    told = await _shown(call, [] if found is None else [found], call.asked.payload)
    return job_calls.Waited(outcome="completed", job=next(iter(told), None))


async def _ends_in_time(call: Call[job_calls.WaitAsked], wanted: JobId) -> bool:
    if call.shared.stopping:
        return False
    waiter = call.shared.watcher.add(wanted)
    try:
        with suppress(Stopping):
            await waiter.looked
            return waiter.ended.done() or await answer(waiter.ended, call.asked.timeout, call.client.clock)
        return False
    finally:
        call.shared.watcher.discard(waiter)


async def cancel(call: Call[job_calls.CancelAsked]) -> job_calls.CancelTold:
    """End waiting jobs, and ask running ones to stop."""
    ids = [job_id(each) for each in call.asked.ids]
    retention = call.asked.retention
    kept = call.shared.retention if retention is None else retention.retention()
    outcomes = await call.store.cancel(ids, kept)
    done = [each for each, outcome in zip(ids, outcomes, strict=True) if outcome is not CancelOutcome.NOT_FOUND]
    await write_down_jobs(call, "cancel", done, {})
    return job_calls.CancelTold(outcomes=outcomes)


async def retry(call: Call[job_calls.ChangeAsked]) -> job_calls.ChangeTold:
    """Give dead and cancelled jobs a new budget."""
    return await _change(call, RETRY)


async def delete(call: Call[job_calls.ChangeAsked]) -> job_calls.ChangeTold:
    """Delete finished jobs."""
    return await _change(call, DELETE)


async def _change(call: Call[job_calls.ChangeAsked], operation: Operation) -> job_calls.ChangeTold:
    asked = call.asked
    if (asked.ids is None) is (asked.filter is None):
        message = "give ids or a filter, one of both: each says which jobs are meant"
        raise InvalidValue(message)
    if asked.filter is not None:
        _refuse_to_guess(call, asked.filter)
        return await change_matching(call, operation, asked.filter.filter(), _words(asked.filter))
    ids = [job_id(each) for each in asked.ids or ()]
    outcomes = await operation.change(call.store, ids)
    await write_down_jobs(call, operation.name, job_calls.changed_ids(ids, outcomes), {})
    return job_calls.ChangeTold(outcomes=outcomes)


def _refuse_to_guess(call: Call[Any], chosen: Chosen) -> None:
    """Refuse a change by what is secret: that it was made would tell that it is there."""
    if _looks_through_a_mask(call, chosen):
        message = (
            "payload_text cannot choose jobs to change for one who sees payloads with what is secret hidden: list the "
            "jobs, and give their ids"
        )
        raise InvalidValue(message)


def _words(chosen: Chosen) -> dict[str, str]:
    given = ((name, getattr(chosen, name)) for name in Chosen.__struct_fields__)
    words = {name: str(value)[:200] for name, value in given if value is not None}
    # whoever reads the audit need not be one who reads payloads
    return words | {"payload_text": HIDDEN} if "payload_text" in words else words


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.ENQUEUE, enqueue),
    Handled(operations.ENQUEUE_BATCHES, enqueue_batches),
    Handled(operations.GLANCE, glance),
    Handled(operations.GET, get),
    Handled(operations.JOBS, jobs),
    Handled(operations.NEWEST, newest),
    Handled(operations.DEAD, dead),
    Handled(operations.JOB, job),
    Handled(operations.PLACE, place),
    Handled(operations.WHY, why),
    Handled(operations.WAIT, wait),
    Handled(operations.CANCEL, cancel),
    Handled(operations.RETRY, retry),
    Handled(operations.DELETE, delete),
)
