"""Claim: ready jobs to a worker, each with a token of its own."""

from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.duration import later
from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest
from windlass.stores.postgres.moves.departure import refuse_if
from windlass.stores.postgres.moves.receipts import receipt
from windlass.stores.postgres.rows import PLACE, claim_of
from windlass.stores.postgres.work import Changes, Row, Rows, Statement, Work

_FLAGS: Final = 4
"""How many columns of `claim.sql` stand before those of the job."""
_LEASE: Final = 3
"""How many of `claimed_before.sql` do."""


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


def claim_heads(changes: Changes, request: ClaimRequest, request_id: str, *, promoted: bool) -> Work[Heads]:
    """Claim the first ready jobs, strictly in the order of the queues, by one statement.

    `promoted`: all that has come due and can be promoted was, so that the rest is no reason to wait. In a store that
    was moved `StoreMoved` is raised.
    """
    rows = yield Statement("claim", [*_parameters(changes, request, request_id), promoted])
    now, moved, due, stranger, seq = rows[0][:5]
    refuse_if(moved)
    if seq is None:
        return Heads([], due=due, stranger=stranger)
    return Heads(_in_order(request, [row[_FLAGS:] for row in rows], now))


def claim_chosen(changes: Changes, request: ClaimRequest, request_id: str, *, promoted: bool) -> Work[Heads]:
    """Claim the most urgent jobs of all queues, or those of some kinds, by one statement; see `claim_heads`."""
    rows = yield Statement("claim_chosen", [*_parameters(changes, request, request_id), request.by_priority, promoted])
    now, moved, due, chosen, seq = rows[0][:5]
    refuse_if(moved)
    if seq is None:
        return Heads([], due=due, overtaken=chosen > 0)
    return Heads(_in_order(request, [row[_FLAGS:] for row in rows], now))


def claimed_before(request: ClaimRequest, request_id: str) -> Work[Heads]:
    """Return the claims of a request that was served before, those that still hold."""
    kept = yield from receipt(request_id)
    if kept is None or not kept.reply:
        return Heads([], repeated=True)
    names = kept.reply.split(",")
    rows = yield Statement("claimed_before", [[int(name.partition(":")[0]) for name in names], names])
    ordered = sorted(rows, key=lambda row: _place(request, row[_LEASE:]))
    return Heads([claim_of(row[_LEASE:], row[0], row[1], row[2]) for row in ordered])


def _parameters(changes: Changes, request: ClaimRequest, request_id: str) -> list[object]:
    """Return the values that `claim.sql` and `claim_chosen.sql` begin with."""
    kinds = None if request.kinds is None else [kind for kind in request.kinds if kind is not None]
    raw = request.kinds is not None and None in request.kinds
    wanted = [request.queues, request.limit, request.lease, request.worker, kinds, raw]
    return [changes.now, request_id, *wanted, changes.repeated]


def _in_order(request: ClaimRequest, rows: Rows, now: datetime) -> list[Claim]:
    """Return the claims that rows prove, the most urgent first."""
    ordered = (
        sorted(rows, key=PLACE) if len(request.queues) == 1 else sorted(rows, key=lambda row: _place(request, row))
    )
    lease_expires_at = later(now, request.lease)
    return [claim_of(row, now, lease_expires_at, request.worker) for row in ordered]


def _place(request: ClaimRequest, row: Row) -> tuple[object, ...]:
    place = PLACE(row)
    return place if request.by_priority else (list(request.queues).index(row[2]), *place)
