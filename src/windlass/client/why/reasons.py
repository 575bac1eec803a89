"""From what is known of a job to the chain of reasons: pure, with the time as a part of what is known."""

from collections.abc import Iterator
from typing import assert_never

from windlass.client.spoken import distance
from windlass.client.why.finished import finished, moved, not_found
from windlass.client.why.known import Known, Reason
from windlass.client.why.running import running
from windlass.client.why.waiting import pending, scheduled
from windlass.core.job import Job
from windlass.core.states import State


def reasons(known: Known) -> list[Reason]:
    """Return why a job stands where it stands, the most decisive reason first; there is always one."""
    if known.job is None:
        return list(not_found(known))
    return list(_chain(known, known.job))


def _chain(known: Known, job: Job) -> Iterator[Reason]:
    if job.damage is not None:
        yield _damaged(job, job.damage)
    if known.moved is not None and job.state.waiting:
        yield moved(known)
    match job.state:
        case State.SCHEDULED:
            yield from scheduled(known, job)
        case State.PENDING:
            yield from pending(known, job)
        case State.RUNNING:
            yield from running(known, job)
        case State.SUCCEEDED | State.DEAD | State.CANCELLED:
            yield from finished(known, job)
        case _:
            assert_never(job.state)
    yield from _key(known, job)
    yield from _schedule(known, job)


def _damaged(job: Job, damage: str) -> Reason:
    repair = "repair the stored value with the tools of the store"
    if job.state in {State.DEAD, State.CANCELLED}:
        repair = f"no worker can run it like this: {repair}, then: windlass jobs retry {job.id}"
    elif job.state is State.RUNNING:
        repair = f"{repair}; the attempt that runs was claimed before the damage"
    elif job.state.waiting:
        repair = f"no worker can run it like this: {repair}, else the next claim makes the job dead"
    return Reason("damaged", f"its stored record is damaged: {damage}", repair, {"damage": damage})


def _key(known: Known, job: Job) -> Iterator[Reason]:
    if job.state.finished or job.unique_key is None or known.key_holder != job.id:
        return
    yield Reason(
        "holds_key",
        f"it holds the unique key {job.unique_key!r}: another enqueue with that key gives this job, and no second one",
        None,
        {"key": job.unique_key},
    )


def _schedule(known: Known, job: Job) -> Iterator[Reason]:
    if job.schedule_id is None:
        return
    found, facts = known.schedule, {"schedule": job.schedule_id}
    made = f"it was made by schedule {job.schedule_id!r}, which"
    if found is None:
        yield Reason("schedule_removed", f"{made} is not here any more: it is the last of its kind", None, facts)
    elif found.paused:
        advice = f"to let it go on: windlass schedules resume {found.id}"
        yield Reason("schedule_paused", f"{made} is paused: no other job follows", advice, facts)
    elif found.declared and not any(found.id in server.schedules for server in known.live):
        yield Reason(
            "schedule_orphaned",
            f"{made} no live server declares: no other job follows",
            f"start a server of the app that declares it, or: windlass schedules remove {found.id}",
            facts,
        )
    elif found.next_run_at is not None:
        when = distance(found.next_run_at, known.now)
        yield Reason("schedule", f"{made} makes the next one {when}", None, {**facts, "next_run_at": found.next_run_at})
