"""Claim: ready jobs to a worker, each with a token of its own."""

from typing import Any, NamedTuple

import msgspec

from windlass.core.duration import later, to_micros
from windlass.core.job import Claim
from windlass.core.states import State
from windlass.core.store import ClaimRequest
from windlass.stores.sqlite.moves.holds import free_at_claim
from windlass.stores.sqlite.moves.promote import promote_queue
from windlass.stores.sqlite.moves.receipts import receipt, write_receipt
from windlass.stores.sqlite.rows import PLACE, ClaimedRow, JobRow, Standing, claim_of, frees_key, job_of, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction

PROMOTED_AT_ONCE = 1000


class ClaimCall(NamedTuple):
    """One caller's wish."""

    request: ClaimRequest
    request_id: str | None = None


def claim(tx: Transaction, calls: list[ClaimCall]) -> list[list[Claim]]:
    """Serve each call in turn."""
    return [_claim(tx, call) for call in calls]


def _claim(tx: Transaction, call: ClaimCall) -> list[Claim]:
    if (reply := receipt(tx, call.request_id)) is not None:
        return _same_claims(tx, reply)
    request = call.request
    claims: list[Claim] = []
    for queue in request.queues:
        if len(claims) >= request.limit:
            break
        claims += _claim_from(tx, queue, request, request.limit - len(claims))
    write_receipt(tx, call.request_id, [(claim.job.id, claim.token) for claim in claims])
    return claims


def _claim_from(tx: Transaction, queue: str, request: ClaimRequest, limit: int) -> list[Claim]:
    paused = tx.row("paused", (queue,))
    # a queue that this very commit brings has no row yet
    if paused is not None and paused[0]:
        return []
    promote_queue(tx, queue, PROMOTED_AT_ONCE)
    lease_expires_at = later(tx.moment, request.lease)
    rows = _take(tx, queue, request, limit, to_micros(lease_expires_at))
    if not rows:
        return []
    rows.sort(key=PLACE)
    for row in rows:
        if frees_key(row):
            free_at_claim(tx, ClaimedRow(*row))
    tx.moved(queue, State.PENDING, State.RUNNING, len(rows))
    return [claim_of(row, tx.moment, lease_expires_at, request.worker) for row in rows]


def _take(tx: Transaction, queue: str, request: ClaimRequest, limit: int, expires: int) -> list[tuple[Any, ...]]:
    parameters = {"now": tx.now, "lease_expires_at": expires, "worker": request.worker}
    if request.kinds is None:
        rows = tx.execute(sql("claim"), {"queue": queue, "limit": limit, **parameters})
    else:
        seqs = json_list(_ready_of_kinds(tx, queue, request, limit))
        rows = tx.execute(sql("claim_these"), {"seqs": seqs, **parameters})
    return rows.fetchall()


def _ready_of_kinds(tx: Transaction, queue: str, request: ClaimRequest, limit: int) -> list[int]:
    """Look at the head of each kind by itself, so that jobs of other kinds cost nothing, however many are ahead."""
    heads: list[tuple[int, int, int]] = []
    for kind in request.kinds or ():
        heads += tx.execute(sql("ready_of_kind"), (queue, kind, limit)).fetchall()
    heads.sort()
    return [seq for _, _, seq in heads[:limit]]


def _same_claims(tx: Transaction, reply: str) -> list[Claim]:
    """Return the claims of a request that was served before, those that still hold."""
    claims: list[Claim] = []
    for job_id, token in msgspec.json.decode(reply):
        row = tx.row("standing", (job_id,))
        standing = None if row is None else Standing(*row)
        if standing is not None and standing.state is State.RUNNING and standing.token == token:
            claims.append(Claim(job_of(JobRow(*tx.row("get", (job_id,)))), token))
    return claims
