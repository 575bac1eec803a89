"""What an operator does to jobs, by id or by filter."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NoReturn

from windlass.core.errors import JobNotFound, UniqueConflict, WrongState
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.retention import Retention
from windlass.core.states import ENDS, WAITING, State
from windlass.core.store import Store

logger = logging.getLogger("windlass")

CHUNK: Final = 1_000


@dataclass(frozen=True, slots=True)
class Operation:
    """One change to many jobs: the states that allow it, how people say them, and the store's call."""

    name: str
    states: tuple[State, ...]
    needed: str
    change: Callable[[Store, Sequence[JobId]], Awaitable[list[Changed]]]


RETRY: Final = Operation(
    "retry", (State.DEAD, State.CANCELLED), "dead or cancelled", lambda store, ids: store.retry(ids)
)
REQUEUE: Final = Operation("requeue_dead", (State.DEAD,), "dead", lambda store, ids: store.retry(ids))
DELETE: Final = Operation("delete", tuple(sorted(ENDS)), "finished", lambda store, ids: store.delete(ids))


def reschedule(run_at: datetime | None) -> Operation:
    """Return the operation that lets waiting jobs run at `run_at`, or now."""
    return Operation(
        "reschedule",
        tuple(sorted(WAITING)),
        "pending or scheduled",
        lambda store, ids: store.reschedule(ids, run_at),
    )


def cancel(retention: Retention, tell: Callable[[JobId, CancelOutcome], None]) -> Operation:
    """Return the operation that ends waiting jobs and asks the holders of running ones to stop; `tell` hears which."""

    async def change(store: Store, ids: Sequence[JobId]) -> list[Changed]:
        outcomes = await store.cancel(ids, retention)
        for job_id, outcome in zip(ids, outcomes, strict=True):
            tell(job_id, outcome)
        return [Changed.NOT_FOUND if each is CancelOutcome.NOT_FOUND else Changed.DONE for each in outcomes]

    # in the order in which jobs go through them: one that moves on meanwhile is met again
    return Operation("cancel", (State.SCHEDULED, State.PENDING, State.RUNNING), "not finished", change)


async def by_id(store: Store, operation: Operation, job_id: JobId) -> None:
    """Change one job; raises `JobNotFound`, `WrongState` or `UniqueConflict`."""
    [changed] = await operation.change(store, (job_id,))
    if changed is not Changed.DONE:
        await _raise(store, operation, job_id, changed)


async def require(store: Store, operation: Operation, job_id: JobId) -> None:
    """Refuse a job whose state does not allow the operation although the store's call would."""
    glance = (await store.glance((job_id,))).get(job_id)
    if glance is None:
        raise JobNotFound(job_id)
    if glance.state not in operation.states:
        raise WrongState(job_id, glance.state, operation.needed)


async def by_filter(store: Store, operation: Operation, chosen: JobFilter) -> int:
    """Change every job that matches and can be changed, in chunks; return how many were."""
    answers: Counter[Changed] = Counter()
    async for chunk in chunks(store, operation, chosen):
        answers += chunk
    if held := answers[Changed.KEY_HELD]:
        logger.warning("%s left out %d jobs whose unique key another live job holds", operation.name, held)
    return answers[Changed.DONE]


async def chunks(
    store: Store, operation: Operation, chosen: JobFilter, *, last: int | None = None
) -> AsyncGenerator[Counter[Changed]]:
    """Change every job that matches and can be changed, and tell after each chunk what became of it.

    Whoever stops between two chunks leaves the rest as it was. With `last` jobs past that sequence number are left.
    """
    for state in operation.states:
        if chosen.state not in (None, state):
            continue
        after: int | None = None
        while page := await store.jobs(replace(chosen, state=state), after=after, limit=CHUNK):
            ids = [job.id for job in page if last is None or job.seq <= last]
            if ids:
                yield Counter(await operation.change(store, ids))
            after = page[-1].seq
            if last is not None and after >= last:
                break


async def _raise(store: Store, operation: Operation, job_id: JobId, changed: Changed) -> NoReturn:
    [job] = await store.get((job_id,))
    if changed is Changed.NOT_FOUND or job is None:
        raise JobNotFound(job_id)
    if changed is Changed.KEY_HELD:
        raise UniqueConflict(job.unique_key or "", None)
    raise WrongState(job_id, job.state, operation.needed)
