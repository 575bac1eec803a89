"""Gives ready jobs to the caller, and sets aside the damaged ones that it meets."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.core.job import Claim
from windlass.core.requests import Claimed, ClaimRequest
from windlass.kit.request_names import of_kind
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import left_out, log_set_aside
from windlass.stores.redis.replies import DamagedClaim, FramedClaims, claims_in, framed_claim_of, framed_claims_in
from windlass.stores.redis.requests import Ask, names, span
from windlass.stores.redis.stored_jobs import decoded

MOST_GIVEN: Final = 16 * 1024 * 1024
"""Bytes after which a script gives no more jobs, of which it always gives one: others are served then."""
TRIES: Final = 10
"""How often a claim looks again while jobs come due faster than they can be promoted; then it takes what there is."""

_decode = msgspec.msgpack.Decoder().decode
_left_out_member: Final = left_out("a line of pending jobs")


class ClaimBatch(NamedTuple):
    """What a claim gives, and whether there may be more that a next one would give."""

    claims: list[Claim]
    cut: bool = False


async def claim(caller: Caller, request: ClaimRequest, request_id: str | None) -> Claimed:
    """Give up to `limit` ready jobs, fewer where they are large."""
    return Claimed((await give(caller, request, request_id)).claims)


async def give(caller: Caller, request: ClaimRequest, request_id: str | None) -> ClaimBatch:
    """Give up to `limit` ready jobs, and tell whether it are fewer since they are large."""
    if request.limit < 1 or not request.queues:
        return ClaimBatch([])
    ask = _ask_of(request)
    # a turn that only promoted leaves no receipt: the one that gives has it, and all have one name
    named = of_kind("claim", request_id)
    turn = 0
    while turn <= TRIES:
        # a token is its number behind this: no two are alike, also after the server has lost what it gave out
        seed = f"{caller.tokens_begin}{caller.new_request_id()}-"
        ask |= {"seed": seed, "regardless": turn == TRIES}
        asked = dict(ask)
        found = claims_in(await caller.once("claim", asked, named), request.worker)
        told, claims = await _framed(caller, asked, request.worker) if found is None else found
        if told.damaged:
            await _note_damaged(caller, told.damaged, None if claims else asked["request"])
        if claims or (found is not None and not told.due):
            return ClaimBatch(claims, told.cut)
        # where nothing but damaged ones was given, those behind them are
        turn += found is not None
    return ClaimBatch([])


def _ask_of(request: ClaimRequest) -> Ask:
    ask: Ask = {
        "queues": list(dict.fromkeys(request.queues)),
        "limit": request.limit,
        "bytes": MOST_GIVEN,
        "lease": span(request.lease),
        "worker": request.worker,
        "by_priority": request.by_priority,
    }
    if request.kinds is not None:
        ask["kinds"] = names(request.kinds)
    return ask


async def _framed(caller: Caller, ask: dict[str, Any], worker: str | None) -> tuple[FramedClaims, list[Claim]]:
    """Ask again for the claims of a reply that could not be read; those that cannot be read are set aside."""
    told = framed_claims_in(await caller.once("claim", {**ask, "framed": True}, ask["request"]))
    claims: list[Claim] = []
    for job_id, token, row in told.claims:
        claim = decoded(row, lambda row: framed_claim_of(row, worker))
        if claim is None:
            told.damaged.append(DamagedClaim(job_id, "its claim cannot be read", token))
        else:
            claims.append(claim)
    return told, claims


async def _note_damaged(caller: Caller, damaged: Sequence[DamagedClaim], forget: str | None) -> None:
    """Log what a claim has set aside, and set aside by its token what was found when the claim had been given.

    The receipt of the request `forget` goes with that: what it gives can be claimed anew.
    """
    log_set_aside((row.id, row.why) for row in damaged if row.token is None and row.id)
    for row in damaged:
        if not row.id:
            _left_out_member(row.why)
    held = [row for row in damaged if row.token is not None]
    if held:
        stored = await caller.stored.damaged([row.id for row in held])
        found = {job_id: job.damage for job_id, job in stored.items()}
        rows = [(row.id, row.token, found.get(row.id) or row.why) for row in held]
        done = _decode(await caller.once("set_aside", {"jobs": rows, "forget": forget}))
        log_set_aside((row[0], row[2]) for row, is_done in zip(rows, done, strict=True) if is_done)
