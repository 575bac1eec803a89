"""Claim, and what only the holder of a claim may do: settle, renew and note."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from typing import Final, TypeAlias

from windlass.core.choosing import NO_ACCOUNTS, choose
from windlass.core.commands import ClaimJobs, RenewClaims, SettleClaims, WriteNotes
from windlass.core.duration import ZERO
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Claim, Token
from windlass.core.queries import GetDueTime
from windlass.core.requests import Claimed, ClaimRequest, Renewed, Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.store_calls import Command, RepeatSafety
from windlass.core.verdict import ToReleased, ToSucceeded
from windlass.kit.moves import claiming, settling
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.damaged import is_damaged
from windlass.stores.slatedb.moves.enqueue import find_for_enqueue
from windlass.stores.slatedb.queues import Queue
from windlass.stores.slatedb.table import Table

PROMOTED_AT_ONCE: Final = 1_000


Head: TypeAlias = tuple[bytes, bytes]
"""A place in a line without what the keys of the line begin with, and the whole of it."""


@dataclass(frozen=True, slots=True)
class GiveBackClaims(Command[None]):
    """Put jobs back in their places whose claim was not told to its caller."""

    claim: ClaimJobs
    request_id: str | None
    given: Sequence[Claim]
    repeat = RepeatSafety.SAME


async def claim(table: Table, command: ClaimJobs) -> Claimed:
    """Give up to `limit` ready jobs, the most urgent first."""
    request = command.request
    return Claimed(claiming.claim(table, await _ready(table, request), request, table.rng, table.now))


async def claim_again(
    table: Table, command: ClaimJobs, request_id: str, before: Sequence[tuple[JobId, Token]]
) -> Claimed:
    """Return those claims of an earlier reply that still hold their job."""
    await table.find(job_id for job_id, _ in before)
    table.repeats.add(request_id, command)
    return Claimed([claim for claim in claiming.still_held(table, before) if claim.job.damage is None])


async def give_back(table: Table, command: GiveBackClaims) -> None:
    """Put jobs back in their places, unless the claim was repeated since: they are those of the repeat then."""
    if not table.repeats.has_later(command.request_id, command.claim):
        await settle(
            table, SettleClaims([Settlement(given.job.id, given.token, ToReleased()) for given in command.given])
        )


async def _ready(table: Table, request: ClaimRequest) -> list[Record]:
    """Return the jobs to be given: of the queues one after the other, or of all as if they were one.

    A damaged one becomes dead, and the next is given in its place.
    """
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
        damaged = [record for record in found if record.damage is not None]
        for record in damaged:
            table.set_aside(record)
        if not damaged and len(found) == len(ready):
            return found


async def _first(table: Table, queues: Sequence[Queue], request: ClaimRequest, limit: int) -> list[bytes]:
    """Return the most urgent places in the lines of these queues; places of all lines sort together."""
    lanes: list[_Line] = []
    for queue in queues:
        kinds = list(queue.lines) if request.kinds is None else [kind for kind in request.kinds if kind in queue.lines]
        lanes += map(_Line, await line_heads(table, queue, dict.fromkeys(kinds), limit))
    picks, _ = choose(lanes, NO_ACCOUNTS, limit)
    return [place for _, place in picks]


class _Line:
    """The first places of a line, as a lane that a claim takes jobs from."""

    __slots__ = ("_at", "_places")

    def __init__(self, places: Sequence[Head]) -> None:
        self._places = places
        self._at = 0

    @property
    def accounts(self) -> Sequence[str]:
        """No account bounds a job yet."""
        return ()

    def head(self) -> Head | None:
        """Return the first place that was not picked."""
        return self._places[self._at] if self._at < len(self._places) else None

    def leave_head(self) -> None:
        """Go on to the next place."""
        self._at += 1


async def line_heads(table: Table, queue: Queue, kinds: Iterable[str | None], limit: int) -> list[list[Head]]:
    """Return the first places in each of these lines of a queue, each behind what sorts together over all lines."""
    heads: list[list[Head]] = []
    for kind in kinds:
        index = keys.line(queue.name, kind)
        front = await table.front(index, limit)
        heads.append([(place[len(index) :], place) for place in front.first(limit)])
    return heads


async def promote_queue(table: Table, queue: Queue, limit: int) -> int:
    """Make scheduled jobs of a queue that have come due pending, the earliest first; return how many."""
    if not queue.standing[State.SCHEDULED]:
        return 0
    front = await table.front(keys.due(queue.name), limit)
    due = list(takewhile(lambda place: keys.time_of(place) <= table.now, front.first(limit)))
    found = await table.records(due, parts=())
    for record in found:
        if record.damage is None:
            table.starts_waiting(record, State.PENDING, table.now, ring=False)
        else:
            # its line is not known
            table.set_aside(record)
    return len(found)


async def due_in(table: Table, query: GetDueTime) -> timedelta | None:
    """Return how long it is until the next scheduled job of these queues comes due."""
    known = [table.queues[name] for name in query.queues if name in table.queues]
    waits: list[timedelta] = []
    for queue in known:
        if not queue.paused and queue.standing[State.SCHEDULED]:
            front = await table.front(keys.due(queue.name), 1)
            waits += [max(ZERO, keys.time_of(place) - table.now) for place in front.first(1)]
    return min(waits, default=None)


async def settle(table: Table, command: SettleClaims) -> list[SettleResult]:
    """Write how claims ended, each as one step of its own.

    Where a damaged record does not say who holds its job, the settlement is answered by `StoreCorrupt`.
    """
    await table.find(settlement.job_id for settlement in command.settlements)
    for settlement in command.settlements:
        if settlement.then:
            await find_for_enqueue(table, settlement.then)
    results = [settling.settle(table, settlement, table.now) for settlement in command.settlements]
    if Settled.LOST in results:
        results = table.untold.told(command.settlements, results)
        results = [
            _lost(table, settlement) if result is Settled.LOST else result
            for settlement, result in zip(command.settlements, results, strict=True)
        ]
        if any(isinstance(result, StoreCorrupt) for result in results):
            # a receipt cannot keep them: a repeat gets them again, and learns here that the others were done
            table.untold.add(command.settlements, results)
    return results


def _lost(table: Table, settlement: Settlement) -> SettleResult:
    """Return the answer to a settlement whose token does not hold the job, as far as can be known."""
    record = table.jobs.get(settlement.job_id)
    if record is None or record.damage is None or record.token is not None or record.state is not State.RUNNING:
        return Settled.LOST
    return is_damaged(record)


def weight(settlement: Settlement) -> int:
    """Return the bytes that a settlement brings, about."""
    verdict = settlement.verdict
    result = verdict.result if isinstance(verdict, ToSucceeded) else None
    return len(result or b"") + sum(len(job.payload) for job in settlement.then)


async def renew(table: Table, command: RenewClaims) -> list[Renewed | None]:
    """Let claims hold for a while from now."""
    await table.find(job_id for job_id, _ in command.claims)
    return claiming.renew(table, command.claims, command.lease, table.now)


async def note(table: Table, command: WriteNotes) -> list[bool]:
    """Write progress and log lines of running jobs."""
    await table.find(note.job_id for note in command.notes)
    return [claiming.note(table, note, table.now) for note in command.notes]
