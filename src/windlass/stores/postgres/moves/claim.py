"""Claim: ready jobs to a worker, each with a token of its own."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Claim, Token
from windlass.core.requests import ClaimRequest
from windlass.kit.damage import dead_reason, shown
from windlass.stores.postgres.moves import steps
from windlass.stores.postgres.moves.departure import refuse_if
from windlass.stores.postgres.moves.receipts import receipt, reply_of
from windlass.stores.postgres.rows import PLACE, ClaimedRow, claim_of, damage_of_claim
from windlass.stores.postgres.work import Changes, Row, Rows, Statement, Work, run

_FLAGS: Final = 5
"""How many columns of `claim.sql` stand before those of the job."""
_LEASE: Final = 3
"""How many of `claimed_before.sql` do."""
_DELIVERY: Final = re.compile("[0-9]{1,18}:[0-9]{1,10}")
_ID, _TOKEN = ClaimedRow._fields.index("id"), ClaimedRow._fields.index("token")


class Undecoded(NamedTuple):
    """A claim that was made, though no job can be decoded from it."""

    job_id: JobId
    token: Token
    damage: str


class Heads(NamedTuple):
    """What the heads of some queues gave: claims, or why there are none."""

    claims: list[Claim]
    due: bool = False
    """Jobs have come due that must be promoted first."""
    stranger: bool = False
    """A job is ahead whose kind the caller does not know."""
    overtaken: bool = False
    """Others have taken all that was chosen."""
    repeated: bool = False
    """This was asked before, by the same name, and gave nothing: what came after it may have."""
    damaged: Sequence[int] = ()
    """The numbers of jobs that must be set aside first."""
    undecoded: Sequence[Undecoded] = ()


def claim_heads(changes: Changes, request: ClaimRequest, request_id: str, *, promoted: bool) -> Work[Heads]:
    """Claim the first ready jobs, strictly in the order of the queues, by one statement.

    `promoted`: all that has come due and can be promoted was, so that the rest is no reason to wait. In a store that
    was moved `StoreMoved` is raised.
    """
    parameters = _parameters(changes, request, request_id, promoted=promoted)
    rows = yield from steps.starts_running(run(Statement("claim", parameters)))
    now, moved, due, obstacle, damaged, seq = rows[0][: _FLAGS + 1]
    refuse_if(moved)
    if seq is None:
        return Heads([], due=due, stranger=obstacle and not damaged, damaged=damaged or ())
    return _in_order(request, [row[_FLAGS:] for row in rows], now)


def claim_chosen(changes: Changes, request: ClaimRequest, request_id: str, *, promoted: bool) -> Work[Heads]:
    """Claim the most urgent jobs of all queues, or those of some kinds, by one statement; see `claim_heads`."""
    parameters = _parameters(changes, request, request_id, promoted=promoted)
    statement = Statement("claim_chosen", {**parameters, "by_priority": request.by_priority})
    rows = yield from steps.starts_running(run(statement))
    now, moved, due, chosen, damaged, seq = rows[0][: _FLAGS + 1]
    refuse_if(moved)
    if seq is None:
        return Heads([], due=due, overtaken=chosen, damaged=damaged)
    return _in_order(request, [row[_FLAGS:] for row in rows], now)


def claimed_before(request: ClaimRequest, request_id: str) -> Work[Heads]:
    """Return the claims of a request that was served before, those that still hold."""
    kept = yield from receipt(request_id)
    if kept is None or kept.reply is None:
        return Heads([], repeated=True)
    deliveries = reply_of(request_id, kept.reply, _deliveries)
    names = [f"{seq}:{delivery}" for seq, delivery in deliveries]
    rows = yield Statement("claimed_before", {"seqs": [seq for seq, _ in deliveries], "deliveries": names})
    ordered = sorted(rows, key=lambda row: _place(request, row[_LEASE:]))
    return _decoded(
        ordered, lambda row: claim_of(row[_LEASE:], row[0], row[1], row[2]), lambda row: _undecoded(row[_LEASE:])
    )


def _deliveries(reply: str) -> list[tuple[int, int]]:
    names = reply.split(",")
    if strange := [name for name in names if not _DELIVERY.fullmatch(name)]:
        message = f"{shown(strange[0])} is no delivery"
        raise ValueError(message)
    return [(int(seq), int(delivery)) for seq, _, delivery in (name.partition(":") for name in names)]


def set_aside(changes: Changes, seqs: Sequence[int], queues: Sequence[str]) -> Work[list[tuple[str, str]]]:
    """Make pending jobs dead that are damaged, by one statement; return the id and the last error of each.

    `seqs` are those that a claim has met; more are looked for at the heads of `queues`.
    """
    parameters = {"now": changes.now, "seqs": seqs, "last_error": dead_reason("%s"), "queues": queues}
    rows = yield from steps.ends(changes, (), run(Statement("set_aside", parameters)))
    return [(job_id, error) for job_id, error in rows]


def _parameters(changes: Changes, request: ClaimRequest, request_id: str, *, promoted: bool) -> dict[str, object]:
    """Return the parameters of `claim.sql`, which `claim_chosen.sql` takes too."""
    return {
        "now": changes.now,
        "request_id": request_id,
        "queues": request.queues,
        "limit": request.limit,
        "lease": request.lease,
        "worker": request.worker,
        "kinds": None if request.kinds is None else [kind for kind in request.kinds if kind is not None],
        "raw": request.kinds is not None and None in request.kinds,
        "repeated": changes.repeated,
        "promoted": promoted,
    }


def _in_order(request: ClaimRequest, rows: Rows, now: datetime) -> Heads:
    """Return the claims that rows prove, the most urgent first."""
    ordered = (
        sorted(rows, key=PLACE) if len(request.queues) == 1 else sorted(rows, key=lambda row: _place(request, row))
    )
    lease_expires_at = later(now, request.lease)
    return _decoded(ordered, lambda row: claim_of(row, now, lease_expires_at, request.worker), _undecoded)


def _decoded(rows: Rows, decode: Callable[[Row], Claim], undecoded: Callable[[Row], Undecoded]) -> Heads:
    """Return the claims of rows; they are committed, so that one that does not decode must not hide the others."""
    with suppress(Exception):
        return Heads([decode(row) for row in rows])
    claims: list[Claim] = []
    failed: list[Undecoded] = []
    for row in rows:
        try:
            claims.append(decode(row))
        except Exception:  # noqa: BLE001 - for whatever reason, it would stay claimed until its lease ends
            failed.append(undecoded(row))
    return Heads(claims, undecoded=failed)


def _undecoded(row: Row) -> Undecoded:
    return Undecoded(row[_ID], row[_TOKEN], damage_of_claim(row))


def _place(request: ClaimRequest, row: Row) -> tuple[object, ...]:
    place = PLACE(row)
    return place if request.by_priority else (list(request.queues).index(row[2]), *place)
