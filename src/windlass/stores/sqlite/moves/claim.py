"""Claim: ready jobs to a worker, each with a token of its own."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from windlass.core.commands import ClaimJobs
from windlass.core.duration import later, to_micros
from windlass.core.errors import WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Claim, Token
from windlass.core.requests import Claimed, ClaimRequest
from windlass.core.states import State
from windlass.kit.damage import Unreadable
from windlass.stores.sqlite.moves import steps
from windlass.stores.sqlite.moves.holds import free_at_claim
from windlass.stores.sqlite.moves.moved_check import moved_error
from windlass.stores.sqlite.moves.promote import promote_queue
from windlass.stores.sqlite.moves.receipts import SqliteRequest, receipt, write_receipt
from windlass.stores.sqlite.moves.set_aside import set_aside_damaged
from windlass.stores.sqlite.rows import PLACE, ClaimedRow, JobRow, Standing, claim_of, frees_key, job_of, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction

PROMOTED_AT_ONCE = 1000
CHECKED_AT_ONCE = 100
"""Jobs that are checked together once a claim has met a damaged one: more may follow it."""

_Place: TypeAlias = tuple[int, int, int]
"""Where a ready job stands: priority, run_at, sequence number."""


def claim(tx: Transaction, requests: Sequence[SqliteRequest[ClaimJobs]]) -> list[Claimed | WindlassError]:
    """Give ready jobs to each caller in turn."""
    return [_claim(tx, command.request, request_id) for command, request_id in requests]


def _claim(tx: Transaction, request: ClaimRequest, request_id: str | None) -> Claimed | WindlassError:
    if (reply := receipt(tx, request_id, list[tuple[JobId, Token]])) is not None:
        return Claimed(_same_claims(tx, reply))
    if not tx.takes_jobs():
        return moved_error(tx)
    claims = _claim_merged(tx, request) if request.by_priority else _claim_in_order(tx, request)
    # an empty one leaves none: it would be a change, wake whoever waits, and let them claim in vain again
    if claims:
        write_receipt(tx, request_id, [(claim.job.id, claim.token) for claim in claims])
    return Claimed(claims)


def _claim_in_order(tx: Transaction, request: ClaimRequest) -> list[Claim]:
    claims: list[Claim] = []
    for queue in request.queues:
        if len(claims) >= request.limit:
            break
        if _gives(tx, queue, request):
            claims += _claim_from(tx, queue, request, request.limit - len(claims))
    return claims


def _claim_merged(tx: Transaction, request: ClaimRequest) -> list[Claim]:
    """Look at the head of every queue, and take the most urgent of all."""
    heads: list[_Place] = []
    for queue in dict.fromkeys(request.queues):
        if _gives(tx, queue, request):
            heads += _ready(tx, queue, request, request.limit)
    return _proved(tx, request, _take(tx, request, sorted(heads)[: request.limit]))


def _gives(tx: Transaction, queue: str, request: ClaimRequest) -> bool:
    """Whether claims are given from `queue`; what has come due there is promoted."""
    paused = tx.row("paused", {"queue": queue})
    # a queue that this very commit brings has no row yet
    if paused is not None and paused[0]:
        return False
    promote_queue(tx, queue, PROMOTED_AT_ONCE)
    if tx.careful:
        _set_aside_damaged(tx, queue, request)
    return True


def _set_aside_damaged(tx: Transaction, queue: str, request: ClaimRequest) -> None:
    """Make damaged jobs dead until there is none among those that are given next."""
    count = max(request.limit, CHECKED_AT_ONCE)
    while True:
        heads = tx.execute(sql("ready"), {"queue": queue, "limit": count}).fetchall()
        unknown = [seq for _, _, seq, kind in heads if isinstance(kind, Unreadable)]
        if not set_aside_damaged(tx, unknown + [seq for *_, seq in _ready(tx, queue, request, count)]):
            return


def _claim_from(tx: Transaction, queue: str, request: ClaimRequest, limit: int) -> list[Claim]:
    if request.kinds is None:
        rows = steps.starts_running(tx, "claim", {"queue": queue, "limit": limit, **_claim_values(tx, request)})
    else:
        rows = _take(tx, request, _ready(tx, queue, request, limit))
    return _proved(tx, request, rows)


def _ready(tx: Transaction, queue: str, request: ClaimRequest, limit: int) -> Sequence[_Place]:
    """Return where the first `limit` ready jobs stand. Mostly all kinds at the head of a queue are wanted."""
    heads = tx.execute(sql("ready"), {"queue": queue, "limit": limit}).fetchall()
    wanted = None if request.kinds is None else set(request.kinds)
    if wanted is None or all(kind in wanted for *_, kind in heads):
        return [(priority, run_at, seq) for priority, run_at, seq, _ in heads]
    return _ready_of_kinds(tx, queue, wanted, limit)


def _ready_of_kinds(tx: Transaction, queue: str, wanted: set[str | None], limit: int) -> Sequence[_Place]:
    """Look at the head of each kind by itself, so that jobs of other kinds cost nothing, however many are ahead."""
    names = sorted(kind for kind in wanted if kind is not None)
    kinds = tx.execute(sql("ready_kinds"), {"kinds": json_list(names), "queue": queue}).fetchall()
    heads: list[_Place] = []
    if None in wanted:
        heads += tx.execute(sql("ready_raw"), {"queue": queue, "limit": limit}).fetchall()
    for (kind,) in kinds:
        heads += tx.execute(sql("ready_of_kind"), {"queue": queue, "kind": kind, "limit": limit}).fetchall()
    return sorted(heads)[:limit]


def _take(tx: Transaction, request: ClaimRequest, places: Sequence[_Place]) -> list[tuple[Any, ...]]:
    if not places:
        return []
    seqs = json_list([seq for *_, seq in places])
    return steps.starts_running(tx, "claim_these", {"seqs": seqs, **_claim_values(tx, request)})


def _claim_values(tx: Transaction, request: ClaimRequest) -> dict[str, object]:
    expires = to_micros(later(tx.moment, request.lease))
    return {"now": tx.now, "lease_expires_at": expires, "worker": request.worker}


def _proved(tx: Transaction, request: ClaimRequest, rows: list[tuple[Any, ...]]) -> list[Claim]:
    """Return the claims that rows prove, the most urgent first."""
    rows.sort(key=PLACE)
    for row in rows:
        if frees_key(row):
            free_at_claim(tx, ClaimedRow(*row))
    lease_expires_at = later(tx.moment, request.lease)
    return [claim_of(row, tx.moment, lease_expires_at, request.worker) for row in rows]


def _same_claims(tx: Transaction, reply: list[tuple[JobId, Token]]) -> list[Claim]:
    """Return the claims of a request that was served before, those that still hold."""
    claims: list[Claim] = []
    for job_id, token in reply:
        job = tx.row("standing", {"job_id": job_id})
        if job is None or (job := Standing(*job)).token != token or job.state_name != State.RUNNING:
            continue
        claim = Claim(job_of(JobRow(*tx.row("get", {"job_id": job_id}))), token)
        # one that was damaged since is left to the rescue
        if claim.job.damage is None:
            claims.append(claim)
    return claims
