"""Claim, and what only the holder of a claim may do: settle, renew and note."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, takewhile
from typing import Final, NamedTuple

from windlass.core.duration import ZERO
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Claim, Note, Token
from windlass.core.requests import ClaimRequest, Renewed, Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.verdict import ToReleased, ToSucceeded
from windlass.kit.moves import claiming, moving, settling
from windlass.kit.moves.record import Record
from windlass.kit.settlements import kept_result, result_of
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.moves.enqueue import find_for_enqueue, refuse_damaged
from windlass.stores.slatedb.moves.receipts import receipt, write_receipt
from windlass.stores.slatedb.queues import Queue
from windlass.stores.slatedb.records import Receipt
from windlass.stores.slatedb.table import Table

PROMOTED_AT_ONCE: Final = 1_000


class ClaimCall(NamedTuple):
    """What one worker wants."""

    request: ClaimRequest
    request_id: str | None = None


class GiveBackCall(NamedTuple):
    """A claim whose caller was not told of the jobs that it was given."""

    claim: ClaimCall
    given: Sequence[Claim]


class SettleCall(NamedTuple):
    """One caller's settlements."""

    settlements: Sequence[Settlement]
    request_id: str | None = None


class RenewCall(NamedTuple):
    """Claims, and how long they are to hold from now."""

    claims: Sequence[tuple[JobId, Token]]
    lease: timedelta


async def claim(table: Table, call: ClaimCall) -> list[Claim]:
    """Give up to `limit` ready jobs, the most urgent first."""
    if (before := (await receipt(table, call.request_id)).claimed) is not None:
        await table.find(job_id for job_id, _ in before)
        table.repeats.add(call.request_id, call)
        return claiming.still_held(table, [given for given in before if given[0] not in table.damaged])
    moving.refuse(table.moved)
    claims = claiming.claim(table, await _ready(table, call.request), call.request, table.rng, table.now)
    if claims:
        write_receipt(table, call.request_id, Receipt(claimed=[(claim.job.id, claim.token) for claim in claims]))
    return claims


async def give_back(table: Table, call: GiveBackCall) -> None:
    """Put jobs back in their places, unless the claim was repeated since: they are those of the repeat then."""
    if not table.repeats.has_later(call.claim.request_id, call.claim):
        await settle(table, SettleCall([Settlement(given.job.id, given.token, ToReleased()) for given in call.given]))


async def _ready(table: Table, request: ClaimRequest) -> list[Record]:
    """Return the jobs to be given: of the queues one after the other, or of all as if they were one."""
    known = (table.queues.get(name) for name in dict.fromkeys(request.queues))
    queues = [queue for queue in known if queue is not None and not queue.paused]
    for queue in queues:
        await promote_queue(table, queue, PROMOTED_AT_ONCE)
    groups = [queues] if request.by_priority else [[queue] for queue in queues]
    while True:
        ready: list[bytes] = []
        for group in groups:
            if len(ready) < request.limit:
                ready += await _first(table, group, request, request.limit - len(ready))
        found = await table.records(ready)
        # a damaged one is aside from now on, and the next is given in its place
        if len(found) == len(ready):
            return found


async def _first(table: Table, queues: Sequence[Queue], request: ClaimRequest, limit: int) -> list[bytes]:
    """Return the most urgent places in the lines of these queues; places of all lines sort together."""
    lines: list[list[bytes]] = []
    for queue in queues:
        kinds = list(queue.lines) if request.kinds is None else [kind for kind in request.kinds if kind in queue.lines]
        lines += await line_heads(table, queue, dict.fromkeys(kinds), limit)
    return list(islice(merge(*lines), limit))


async def line_heads(table: Table, queue: Queue, kinds: Iterable[str | None], limit: int) -> list[list[bytes]]:
    """Return the first places in each of these lines of a queue, without what the keys of a line begin with."""
    heads: list[list[bytes]] = []
    for kind in kinds:
        index = keys.line(queue.name, kind)
        front = await table.front(index, limit)
        heads.append([place[len(index) :] for place in front.first(limit)])
    return heads


async def promote_queue(table: Table, queue: Queue, limit: int) -> int:
    """Make scheduled jobs of a queue that have come due pending, the earliest first; return how many."""
    if not queue.standing[State.SCHEDULED]:
        return 0
    front = await table.front(keys.due(queue.name), limit)
    due = list(takewhile(lambda place: keys.time_of(place) <= table.now, front.first(limit)))
    found = await table.records(due, parts=())
    for record in found:
        queue.place(record, State.PENDING)
    return len(found)


async def due_in(table: Table, queues: Sequence[str]) -> timedelta | None:
    """Return how long it is until the next scheduled job of these queues comes due."""
    known = [table.queues[name] for name in queues if name in table.queues]
    waits: list[timedelta] = []
    for queue in known:
        if not queue.paused and queue.standing[State.SCHEDULED]:
            front = await table.front(keys.due(queue.name), 1)
            waits += [max(ZERO, keys.time_of(place) - table.now) for place in front.first(1)]
    return min(waits, default=None)


async def settle(table: Table, call: SettleCall) -> list[SettleResult]:
    """Write how claims ended, each as one step of its own; that of a damaged job is answered by `StoreCorrupt`."""
    if (before := (await receipt(table, call.request_id)).settled) is not None:
        return [result_of(kept) for kept in before]
    await table.find(settlement.job_id for settlement in call.settlements)
    for settlement in call.settlements:
        if settlement.then:
            await find_for_enqueue(table, settlement.then)
    settle_one = _settle_unless_damaged if table.damaged else settling.settle
    results = [settle_one(table, settlement, table.now) for settlement in call.settlements]
    if Settled.LOST in results:
        results = table.untold.told(call.settlements, results)
    if table.damaged and any(isinstance(result, StoreCorrupt) for result in results):
        # a receipt has no room for them: who asks again is told of them again, and that the others were done
        table.untold.add(call.settlements, results)
    elif call.request_id is not None:
        write_receipt(table, call.request_id, Receipt(settled=list(map(kept_result, results))))
    return results


def _settle_unless_damaged(table: Table, settlement: Settlement, now: datetime) -> SettleResult:
    """Write how a claim ended, unless its job is damaged, or one that holds a key which its next jobs need."""
    try:
        table.damaged.refuse([settlement.job_id])
        refuse_damaged(table, settlement.then)
    except StoreCorrupt as error:
        return error
    return settling.settle(table, settlement, now)


def weight(settlement: Settlement) -> int:
    """Return the bytes that a settlement brings, about."""
    verdict = settlement.verdict
    result = verdict.result if isinstance(verdict, ToSucceeded) else None
    return len(result or b"") + sum(len(job.payload) for job in settlement.then)


async def renew(table: Table, call: RenewCall) -> list[Renewed | None]:
    """Let claims hold for a while from now; nobody holds a job that is damaged."""
    await table.find(job_id for job_id, _ in call.claims)
    if not table.damaged:
        return claiming.renew(table, call.claims, call.lease, table.now)
    sound = [claim for claim in call.claims if claim[0] not in table.damaged]
    renewed = iter(claiming.renew(table, sound, call.lease, table.now))
    return [None if job_id in table.damaged else next(renewed) for job_id, _ in call.claims]


async def note(table: Table, notes: Sequence[Note]) -> list[bool]:
    """Write progress and log lines of running jobs."""
    await table.find(note.job_id for note in notes)
    return [note.job_id not in table.damaged and claiming.note(table, note, table.now) for note in notes]
