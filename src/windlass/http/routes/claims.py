"""Claims: taken, held, reported on and settled."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from windlass.api import claim_calls, claims, operations
from windlass.core.errors import NotAllowed, WindlassError
from windlass.core.ids import JobId, job_id
from windlass.core.job import Token
from windlass.core.looks import Glance
from windlass.core.requests import Claimed, Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import ENDS, FLAGS
from windlass.core.verdict import ToReleased
from windlass.http.call import Call, Handled
from windlass.http.claiming import WaitingClaim
from windlass.http.endings import Endings
from windlass.http.refusal import Refusal
from windlass.http.replies import another_call
from windlass.http.reply import problem_from
from windlass.http.shared import POLL_INTERVAL, Stopping

SPACING: Final = 0.1
MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes of payloads that one claim may bring: whoever asks has to hold them all."""


async def claim(call: Call[claims.ClaimRequest]) -> claims.Claims:
    """Take jobs to work on them."""
    if call.request_id is not None and not call.repeats and call.request_id in call.shared.claimed_in_vain:
        # its caller has asked again meanwhile, and does not hear this one any more
        return claims.Claims(claims=[])
    taken = await _taken(call)
    if call.request_id is not None and call.repeats and not taken:
        call.shared.claimed_in_vain.add(call.request_id)
    taken = await _fitting(call.store, taken)
    call.reading.took(sum(len(each.job.payload) for each in taken.jobs))
    as_bytes = call.asked.payload == "base64"
    return await call.reading.work(call.reading.size, lambda: claims.claims_told(taken, as_bytes=as_bytes))


async def _fitting(store: Store, taken: Claimed) -> Claimed:
    """Return as many claims as one reply has room for, but one at least; the others are given back."""
    size = 0
    for number, each in enumerate(taken.jobs):
        size += len(each.job.payload)
        if size > MOST_BYTES and number:
            await store.settle([Settlement(late.job.id, late.token, ToReleased()) for late in taken.jobs[number:]])
            return Claimed(taken.jobs[:number], taken.next_at)
    return taken


async def _taken(call: Call[claims.ClaimRequest]) -> Claimed:
    waiting = WaitingClaim(call)
    if not call.asked.wait or call.shared.stopping:
        return await waiting.now()
    if call.request_id is None:
        return await call.while_here(waiting.in_time())
    # a repeat joins: what the first is given is not released while the second waits for it
    return await call.while_here(call.shared.claims_under_way.join(call.request_id, waiting.in_time))


async def settle(call: Call[claim_calls.SettleAsked]) -> claim_calls.SettleTold:
    """Write how claims ended, each as one step of its own; one that is wrong is refused alone."""
    endings = Endings(call.client, call.shared.retention, call.identity)
    needed = endings.needed(call.asked.settlements)
    found = await call.store.get(needed) if needed else []
    jobs = {job.id: job for job in found if job is not None}
    made: list[Settlement | claims.Settled] = []
    for ending in call.asked.settlements:
        try:
            made.append(endings.settlement(ending, jobs.get(job_id(ending.id))))
        except (WindlassError, Refusal) as error:
            made.append(claims.Settled(outcome="refused", problem=problem_from(error)))
    wanted = [each for each in made if isinstance(each, Settlement)]
    done = await _settle(call, wanted) if wanted else ()
    if len(done) != len(wanted):
        raise another_call()
    results = iter(done)
    return claim_calls.SettleTold(
        settled=[_told(next(results)) if isinstance(each, Settlement) else each for each in made]
    )


async def _settle(call: Call[Any], settlements: Sequence[Settlement]) -> Sequence[SettleResult]:
    try:
        return await call.store.settle(settlements, request_id=call.request_id)
    except NotAllowed:
        # some of them are out of reach, and nothing was written: each is asked for alone
        return [await _settle_one(call, n, settlement) for n, settlement in enumerate(settlements)]


async def _settle_one(call: Call[Any], n: int, settlement: Settlement) -> SettleResult:
    name = call.request_id
    try:
        [result] = await call.store.settle((settlement,), request_id=None if name is None else f"{name}~{n}")
    except NotAllowed as error:
        return error
    return result


def _told(result: SettleResult) -> claims.Settled:
    match result:
        case Settled.DONE:
            return claims.Settled(outcome="done")
        case Settled.REPEATED:
            return claims.Settled(outcome="repeated")
        case Settled.LOST:
            return claims.Settled(outcome="lost")
        case error:
            return claims.Settled(outcome="refused", problem=problem_from(error))


async def stops(call: Call[claim_calls.StopsAsked]) -> claim_calls.StopsTold:
    """Tell which of these claims should stop, or as soon as one should."""
    held = claim_calls.claims_held(call.asked.claims)
    if not held or not call.asked.wait or call.shared.stopping:
        return claim_calls.StopsTold(stops=await _stops(call, held))
    return claim_calls.StopsTold(stops=await call.while_here(_stops_in_time(call, held)))


async def _stops_in_time(call: Call[claim_calls.StopsAsked], held: Sequence[tuple[JobId, Token]]) -> list[claims.Stop]:
    timeout = 0.0 if call.shared.stopping else call.asked.wait
    with call.shared.listeners.bell((ENDS, FLAGS)) as bell, suppress(Stopping):
        return await bell.find(lambda: _stops(call, held), timeout=timeout, pause=_pause)
    return []


async def _pause(_: object) -> float:
    # it rings at the end of every job there is; this promises nothing, so it goes by the loop's own time
    await asyncio.sleep(SPACING)
    return POLL_INTERVAL


async def _stops(call: Call[Any], held: Sequence[tuple[JobId, Token]]) -> list[claims.Stop]:
    seen = await call.store.glance([each for each, _ in held])
    found = (_stop(each, seen.get(each), token) for each, token in held)
    return [stop for stop in found if stop is not None]


def _stop(each: JobId, seen: Glance | None, token: Token) -> claims.Stop | None:
    if seen is None or seen.state is not State.RUNNING or seen.token != token:
        return claims.Stop(id=each, reason="claim_lost")
    return claims.Stop(id=each, reason="cancel") if seen.cancel_requested else None


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.CLAIM, claim),
    Handled(operations.SETTLE, settle),
    Handled(operations.STOPS, stops),
)
