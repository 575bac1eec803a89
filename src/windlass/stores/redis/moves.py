"""What changes a store's keys: one script for each call, or for the calls of many callers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, Literal, NamedTuple, TypeVar, cast

import msgspec

from windlass.core.errors import OutcomeUnknown
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    KvAny,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED, ToSucceeded
from windlass.kit.gather import Gather
from windlass.kit.records import STATES, server_text
from windlass.kit.request_names import of_kind
from windlass.kit.weight import bytes_of_jobs
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import CLAIM, PRUNE, RESCUE, Told
from windlass.stores.redis.replies import claim_of, claims_in, outcomes_in, refusal_of, time_of
from windlass.stores.redis.requests import (
    BARE,
    Ask,
    as_text,
    failure_of,
    jobs_of,
    kept,
    moment,
    names,
    note_of,
    packed_text,
    schedule_fields,
    settlement_of,
    span,
    spans_kept,
    timing_of,
)
from windlass.stores.redis.weight import (
    MOST_TOGETHER,
    check_size,
    weight_of_jobs,
    weight_of_settlements,
)

T = TypeVar("T")

SMALL: Final = 1024 * 1024
"""Bytes up to which an enqueue goes out together with others."""
MOST_GIVEN: Final = 16 * 1024 * 1024
"""Bytes after which a script gives no more jobs, of which it always gives one: others are served then."""
TRIES: Final = 10
"""How often a claim looks again while jobs come due faster than they can be promoted; then it takes what there is."""
SERVERS_KEPT: Final = timedelta(days=1)
PARCELS_KEPT: Final = timedelta(days=90)
"""How long it is known which parcel of a move came last: whoever goes on with the move must not take longer."""

_renewals = msgspec.msgpack.Decoder(tuple[int, list[bool | None]])
_decode = msgspec.msgpack.Decoder().decode


class Given(NamedTuple):
    """What a claim gives, and whether there may be more that a next one would give."""

    claims: list[Claim]
    cut: bool = False


class Moves:
    """The moves on the keys that begin with one prefix."""

    def __init__(self, caller: Caller, told: Told, *, tokens_begin: str = "") -> None:
        """Run through `caller`; where queues are spread, tokens begin with the name of their queue."""
        self._caller = caller
        self._told = told
        self._tokens_begin = tokens_begin
        self._enqueues: Gather[Sequence[PreparedJob], list[Enqueued]] = Gather(
            self._enqueue_plain, most=MOST_TOGETHER, weight=weight_of_jobs, patience=caller.patience
        )
        self._settlements: Gather[Sequence[Settlement], list[SettleResult]] = Gather(
            self._settle_many, most=MOST_TOGETHER, weight=weight_of_settlements, patience=caller.patience
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._enqueues.close()
        await self._settlements.close()

    async def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        """Put jobs in line, all or none."""
        if not jobs:
            return []
        if request_id is None and _is_plain(jobs):
            return await self._enqueues.ask(jobs)
        # sooner than by the request, of which there would be copies by then
        check_size(bytes_of_jobs(jobs))
        return await self._enqueue(jobs, request_id)

    async def _enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        written = jobs_of(jobs)
        reply = await self._caller.once(
            _name_of(jobs, written), {"jobs": written}, of_kind("enqueue", request_id), doubt=jobs[0].id
        )
        done, *answer = _decode(reply)
        if not done:
            raise refusal_of(*answer)
        if not answer:
            return [Enqueued(job.id, created=True) for job in jobs]
        return [Enqueued(JobId(job_id), created) for job_id, created in answer[0]]

    async def _enqueue_plain(self, batches: list[Sequence[PreparedJob]]) -> list[list[Enqueued] | BaseException]:
        try:
            if len(batches) == 1:
                return [await self._enqueue(batches[0], None)]
            done = iter(await self._enqueue(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [_doubt_of(batch[0].id, unknown) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]

    async def claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        """Give up to `limit` ready jobs, fewer where they are large."""
        return (await self.give(request, request_id)).claims

    async def give(self, request: ClaimRequest, request_id: str | None) -> Given:
        """Give up to `limit` ready jobs, and tell whether it are fewer since they are large."""
        if request.limit < 1 or not request.queues:
            return Given([])
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
        # a turn that only promoted leaves no receipt: the one that gives has it, and all have one name
        named = of_kind("claim", request_id)
        for turn in range(TRIES + 1):
            # a token is its number behind this: no two are alike, also after the server has lost what it gave out
            seed = f"{self._tokens_begin}{self._caller.new_request_id()}-"
            ask |= {"seed": seed, "regardless": turn == TRIES}
            due, cut, rows, damaged = claims_in(await self._caller.once("claim", dict(ask), named))
            self._told.tell(CLAIM, damaged)
            if rows or not due:
                return Given([claim_of(row, request.worker) for row in rows], cut)
        return Given([])

    async def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        """Write how claims ended, each as one step of its own."""
        if not settlements:
            return []
        if request_id is None:
            return await self._settlements.submit(settlements)
        return await self._settle(settlements, request_id)

    async def _settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        ask: Ask = {"settlements": [settlement_of(settlement) for settlement in settlements]}
        name = "succeed" if all(map(_is_plain_success, settlements)) else "settle"
        results = _decode(
            await self._caller.once(name, ask, of_kind("settle", request_id), doubt=settlements[0].job_id)
        )
        if results is True:
            return [Settled.DONE] * len(settlements)
        return [Settled(one) if isinstance(one, str) else refusal_of(*one) for one in results]

    async def _settle_many(self, batches: list[Sequence[Settlement]]) -> list[list[SettleResult] | BaseException]:
        try:
            done = iter(await self._settle(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            return [_doubt_of(batch[0].job_id, unknown) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for `lease` from now."""
        ask: Ask = {"claims": list(claims), "lease": span(lease)}
        expires, flags = _renewals.decode(await self._caller.run("renew", ask))
        until = time_of(expires)
        return [None if flag is None else Renewed(until, flag) for flag in flags]

    async def note(self, notes: Sequence[Note]) -> list[bool]:
        """Write progress and log lines of running jobs."""
        return cast(
            "list[bool]", _decode(await self._caller.once("note", {"notes": [note_of(note) for note in notes]}))
        )

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        ask: Ask = {"ids": list(ids), "keep": kept(retention, State.CANCELLED)}
        return [CancelOutcome(outcome) for outcome in outcomes_in(await self._caller.once("cancel", ask))]

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        return await self._change("retry", {"ids": list(ids)})

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._change("delete", {"ids": list(ids)})

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        return await self._change("reschedule", {"ids": list(ids), "run_at": moment(run_at)})

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue."""
        await self._caller.run("pause", {"queue": queue, "paused": paused})

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims."""
        failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
        ask: Ask = {
            "queues": None if request.queues is None else list(dict.fromkeys(request.queues)),
            "workers": None if request.workers is None else names(request.workers),
            "force": request.force,
            "to": request.to,
            "limit": request.limit,
            "keep": kept(retention, State.DEAD),
            "failure": failure_of(failure),
        }
        rescued, damaged = _decode(await self._caller.once("rescue", ask))
        self._told.tell(RESCUE, damaged)
        return [Rescued(JobId(job_id), STATES[state]) for job_id, state in rescued]

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        promoted, damaged = _decode(await self._caller.once("promote", {"limit": limit}))
        self._told.tell(CLAIM, damaged)
        return cast("int", promoted)

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        ask: Ask = {
            "keep": spans_kept(retention),
            "most": retention.most,
            "limit": limit,
            "servers_kept": span(SERVERS_KEPT),
            "parcels_kept": span(PARCELS_KEPT),
        }
        pruned, damaged = _decode(await self._caller.once("prune", ask))
        self._told.tell(PRUNE, damaged)
        return cast("int", pruned)

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still the expected one."""
        ask: Ask = {"id": schedule.id, "expected": expected, "fields": schedule_fields(schedule)}
        return cast("int | None", _decode(await self._caller.once("write_schedule", ask)))

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return cast("bool", _decode(await self._caller.once("remove_schedule", {"id": schedule_id})))

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        ask: Ask = {
            "id": firing.schedule_id,
            "revision": firing.revision,
            "jobs": jobs_of(firing.jobs),
            "tick": moment(firing.tick),
            "next_run_at": moment(firing.next_run_at),
        }
        outcome, *answer = _decode(await self._caller.once("fire", ask))
        if outcome == "conflict":
            raise refusal_of(*answer)
        [last] = answer
        return Fired(FireOutcome(outcome), None if last is None else JobId(last))

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        ask: Ask = {"key": as_text(write.key), "value": None if write.value is None else as_text(write.value)}
        if isinstance(write.expected, KvAny):
            ask["any"] = True
        elif write.expected is not None:
            ask["expected"] = as_text(write.expected)
        return cast("bool", _decode(await self._caller.once("kv_write", ask)))

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        return cast("bool", _decode(await self._caller.run("lock", {"name": name, "holder": holder, "ttl": span(ttl)})))

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return cast("bool", _decode(await self._caller.once("unlock", {"name": name, "holder": holder})))

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._caller.run("beat", {"id": server.id, "record": server_text(server)})

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._caller.run("leave", {"id": server_id})

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._caller.once("write_audit", {"entries": [packed_text(entry) for entry in entries]})

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add up how long attempts took."""
        await self._caller.once("write_timings", {"timings": [timing_of(timing) for timing in timings]})

    async def _change(self, name: Literal["retry", "delete", "reschedule"], ask: Ask) -> list[Changed]:
        return [Changed(outcome) for outcome in outcomes_in(await self._caller.once(name, ask))]


def _is_plain(jobs: Sequence[PreparedJob]) -> bool:
    """Whether nothing in it can be refused, so that it can share a script with others."""
    for job in jobs:
        if job.unique is not None:
            return False
    return bytes_of_jobs(jobs) <= SMALL


def _name_of(jobs: Sequence[PreparedJob], written: Sequence[Sequence[object]]) -> str:
    """Return the shortest script that puts these jobs in line."""
    if len(written) == 1 and len(written[0]) == BARE:
        return "enqueue_one"
    return "enqueue_keyed" if any(job.unique is not None or job.kv for job in jobs) else "enqueue"


def _is_plain_success(settlement: Settlement) -> bool:
    return isinstance(settlement.verdict, ToSucceeded) and not settlement.then and not settlement.kv


def _doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the script."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt
