"""Rescue: claims whose lease ran out are taken back."""

from typing import NamedTuple

from windlass.core.job import Failure
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.topics import ENDS, FLAGS
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.kit.unique_keys import after_attempt
from windlass.stores.sqlite.moves import ends
from windlass.stores.sqlite.rows import Standing, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import DEAD, RESCUED, Transaction

_END_OF_TIME = 2**62


class RescueCall(NamedTuple):
    """Which claims to take back, and which records stay."""

    request: RescueRequest
    retention: Retention


def rescue(tx: Transaction, calls: list[RescueCall]) -> list[list[Rescued]]:
    """Serve each call in turn."""
    return [_rescue(tx, call) for call in calls]


def _rescue(tx: Transaction, call: RescueCall) -> list[Rescued]:
    request = call.request
    parameters = {
        "now": _END_OF_TIME if request.force else tx.now,
        "queues": None if request.queues is None else json_list(list(request.queues)),
        "workers": None if request.workers is None else json_list(list(request.workers)),
        "limit": request.limit,
    }
    rows = tx.execute(sql("expired"), parameters).fetchall()
    return [_take_back(tx, Standing(*row), call) for row in rows]


def _take_back(tx: Transaction, job: Standing, call: RescueCall) -> Rescued:
    failure = ORPHANED if call.request.force and call.request.to == "dead" else LEASE_EXPIRED
    ends.write_delivery(tx, job, "rescued", failure)
    tx.happened(job.queue, job.kind, RESCUED)
    # whoever held it may be waiting for news that it should stop
    tx.topics.add(FLAGS)
    if job.attempt < job.max_attempts and call.request.to == "retry":
        kept = after_attempt(job)
        ends.wait_again(tx, job, State.PENDING, tx.now, kept, error=failure.summary, forget_token=True)
        return Rescued(job.id, State.PENDING)
    _bury(tx, job, failure, keep=call.retention.keeps(job.queue, State.DEAD))
    return Rescued(job.id, State.DEAD)


def _bury(tx: Transaction, job: Standing, failure: Failure, *, keep: bool) -> None:
    ends.finish(tx, job, State.DEAD, keep=keep, error=failure.summary, forget_token=True)
    tx.happened(job.queue, job.kind, DEAD)
    tx.topics.add(ENDS)
