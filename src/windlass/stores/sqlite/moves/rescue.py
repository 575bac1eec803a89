"""Rescue: claims whose lease ran out are taken back."""

from windlass.core.commands import RescueClaims
from windlass.core.ids import JobId
from windlass.core.job import Failure
from windlass.core.requests import Rescued
from windlass.core.states import State
from windlass.core.topics import FLAGS
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.kit.unique_keys import after_attempt
from windlass.stores.sqlite.damaged import has_unreadable, logger
from windlass.stores.sqlite.moves import delivery_ends, steps
from windlass.stores.sqlite.moves.set_aside import (
    bury_damaged,
    damage_of_lost,
    known_id,
    standing_of,
    without_unreadable,
)
from windlass.stores.sqlite.rows import Standing, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import RESCUED, Transaction

_END_OF_TIME = 2**62


def rescue(tx: Transaction, command: RescueClaims) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    request = command.request
    parameters = {
        "until": _END_OF_TIME if request.force else tx.now,
        "queues": None if request.queues is None else json_list(list(request.queues)),
        "workers": None if request.workers is None else json_list(list(request.workers)),
        "limit": request.limit,
    }
    rows = tx.execute(sql("expired"), parameters).fetchall()
    return [_take_back(tx, Standing(*row), command) for row in rows]


def _take_back(tx: Transaction, job: Standing, command: RescueClaims) -> Rescued:
    failure = ORPHANED if command.request.force and command.request.to == "dead" else LEASE_EXPIRED
    if tx.careful and (damage := damage_of_lost(job)):
        delivery_ends.write_delivery(tx, without_unreadable(job), "rescued", failure)
        return _bury_damaged(tx, job, damage)
    if tx.careful:
        job = standing_of(tx, job)
    delivery_ends.write_delivery(tx, job, "rescued", failure)
    tx.happened(job.queue, job.kind, RESCUED)
    # whoever held it may be waiting for news that it should stop
    tx.topics.add(FLAGS)
    if job.attempt < job.max_attempts and command.request.to == "retry":
        kept = after_attempt(job)
        delivery_ends.wait_again(tx, job, State.PENDING, tx.now, kept, error=failure.summary, forget_token=True)
        return Rescued(job.id, State.PENDING)
    _bury(tx, job, failure, keep=command.retention.keeps(job.queue, State.DEAD))
    return Rescued(job.id, State.DEAD)


def _bury_damaged(tx: Transaction, job: Standing, damage: str) -> Rescued:
    """Make a job dead whose record does not read."""
    logger.error("job %s was made dead when its lease had run out: %s", known_id(job.id, job.seq), damage)
    bury_damaged(tx, job.seq, job.hold, damage)
    kind = job.kind if isinstance(job.kind, str) else None
    jobs = steps.Group(job.queue, kind, State.RUNNING, 1, (job.seq,))
    steps.stops_running(tx, jobs)
    steps.ends(tx, jobs, State.DEAD, keep=True)
    tx.happened(jobs.queue, jobs.kind, RESCUED)
    tx.topics.add(FLAGS)
    return Rescued(JobId("") if has_unreadable((job.id,)) else job.id, State.DEAD)


def _bury(tx: Transaction, job: Standing, failure: Failure, *, keep: bool) -> None:
    delivery_ends.finish(tx, job, State.DEAD, keep=keep, error=failure.summary, forget_token=True)
