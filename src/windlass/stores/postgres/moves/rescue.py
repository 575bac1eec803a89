"""Rescue: claims whose lease ran out are taken back."""

from collections.abc import Callable, Sequence

from windlass.core.commands import RescueClaims
from windlass.core.duration import ZERO
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.states import State
from windlass.core.topics import FLAGS
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.kit.unique_keys import after_attempt
from windlass.stores.postgres.moves import delivery_ends
from windlass.stores.postgres.moves.delivery_ends import Ended, Ending, Waiting
from windlass.stores.postgres.moves.marks import lease_mark
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import DEAD, RESCUED, Changes, Statement, Work


def rescue(changes: Changes, command: RescueClaims) -> Work[list[Rescued]]:
    """Take back the claims that are asked for; those whose job is locked are left for the next time."""
    mark = yield from lease_mark()
    rows = yield Statement("expired", {**_parameters(changes, command.request), "lease_mark": mark})
    return (yield from _take_back(changes, [Standing(*row) for row in rows], command))


def rescue_of(seq: int) -> Callable[[Changes, RescueClaims], Work[list[Rescued]]]:
    """Return the step that takes back one claim that `expired_seqs` found, if it is still there to be taken.

    For when one job that cannot be written stands in the way of all the others.
    """

    def rescue_one(changes: Changes, command: RescueClaims) -> Work[list[Rescued]]:
        rows = yield Statement("expired_one", {"now": changes.now, "force": command.request.force, "seq": seq})
        return (yield from _take_back(changes, [Standing(*row) for row in rows], command))

    return rescue_one


def expired_seqs(changes: Changes, request: RescueRequest) -> Work[list[int]]:
    """Return the numbers of the jobs whose claims `request` means."""
    mark = yield from lease_mark()
    rows = yield Statement("expired_seqs", {**_parameters(changes, request), "lease_mark": mark})
    return [row[0] for row in rows]


def _parameters(changes: Changes, request: RescueRequest) -> dict[str, object]:
    queues = None if request.queues is None else list(request.queues)
    workers = None if request.workers is None else list(request.workers)
    return {
        "now": changes.now,
        "force": request.force,
        "queues": queues,
        "workers": workers,
        "limit": request.limit,
    }


def _take_back(changes: Changes, jobs: Sequence[Standing], command: RescueClaims) -> Work[list[Rescued]]:
    if not jobs:
        return []
    request, retention = command.request, command.retention
    failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
    rescued = [Rescued(job.id, _next_state(job, request)) for job in jobs]
    waiting = [
        Waiting(job, State.PENDING, ZERO, after_attempt(job), job.attempt, failure.summary, forget_token=True)
        for job, (_, state) in zip(jobs, rescued, strict=True)
        if state is State.PENDING
    ]
    endings = [
        Ending(job, State.DEAD, retention.keeps(job.queue, State.DEAD), failure.summary, forget_token=True)
        for job, (_, state) in zip(jobs, rescued, strict=True)
        if state is State.DEAD
    ]
    yield from delivery_ends.write_deliveries(changes, [Ended(job, "rescued", failure) for job in jobs])
    yield from delivery_ends.wait_again_many(changes, waiting)
    yield from delivery_ends.finish_many(changes, endings)
    _tell(changes, jobs, endings)
    return rescued


def _next_state(job: Standing, request: RescueRequest) -> State:
    return State.PENDING if job.attempt < job.max_attempts and request.to == "retry" else State.DEAD


def _tell(changes: Changes, jobs: Sequence[Standing], endings: Sequence[Ending]) -> None:
    # whoever held them may be waiting for news that it should stop
    changes.topics.add(FLAGS)
    for job in jobs:
        changes.happened(job.queue, job.kind, RESCUED)
    for ending in endings:
        changes.happened(ending.job.queue, ending.job.kind, DEAD)
