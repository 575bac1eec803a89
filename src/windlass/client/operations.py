"""What an operator does to jobs, by id or by filter."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NoReturn

from windlass.core.errors import JobNotFound, UniqueConflict, WrongState
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.states import ENDS, WAITING, State
from windlass.core.store import Changed, Store

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
    for state in operation.states:
        if chosen.state in (None, state):
            await _by_state(store, operation, replace(chosen, state=state), answers)
    if held := answers[Changed.KEY_HELD]:
        logger.warning("%s left out %d jobs whose unique key another live job holds", operation.name, held)
    return answers[Changed.DONE]


async def _by_state(store: Store, operation: Operation, chosen: JobFilter, answers: Counter[Changed]) -> None:
    after: int | None = None
    while page := await store.jobs(chosen, after=after, limit=CHUNK):
        answers.update(await operation.change(store, [job.id for job in page]))
        after = page[-1].seq


async def _raise(store: Store, operation: Operation, job_id: JobId, changed: Changed) -> NoReturn:
    [job] = await store.get((job_id,))
    if changed is Changed.NOT_FOUND or job is None:
        raise JobNotFound(job_id)
    if changed is Changed.KEY_HELD:
        raise UniqueConflict(job.unique_key or "", None)
    raise WrongState(job_id, job.state, operation.needed)
