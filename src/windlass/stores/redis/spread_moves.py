"""Moves where every queue has a hash tag of its own: what needs two queues at once is refused."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from windlass.core.errors import NotAtomicHere
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.stores.redis.failures import Failures
from windlass.stores.redis.moves import Moves
from windlass.stores.redis.one_queue import queue_of, refusal, refusal_of
from windlass.stores.redis.queues import Part, Queues
from windlass.stores.redis.spread_schedules import SpreadSchedules

A = TypeVar("A")
R = TypeVar("R")

_NOT_KNOWN: Final = Renewed(datetime.fromtimestamp(0, UTC), cancel_requested=False)
"""Stands for a claim in a queue that does not answer: no end is known to which it holds."""


class SpreadMoves:
    """See `Moves`: each call goes to the queue that it is about, or to the keys that belong to no queue."""

    def __init__(self, queues: Queues) -> None:
        """Work on `queues`."""
        self._queues = queues
        self._schedules = SpreadSchedules(queues)

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._queues.close()

    async def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        """Put jobs of one queue in line, all or none."""
        if not jobs:
            return []
        refused = refusal(jobs, jobs[0].queue)
        if refused is not None:
            raise refused
        return await (await self._queues.taking(jobs[0].queue)).moves.enqueue(jobs, request_id)

    async def claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        """Give up to `limit` ready jobs, one queue after the other."""
        queues = list(dict.fromkeys(request.queues))
        if request.by_priority and len(queues) > 1:
            raise NotAtomicHere("a claim by priority over several queues", "claim from one queue after the other")
        claims: list[Claim] = []
        cut = False
        failures = Failures()
        for queue in queues:
            if len(claims) < request.limit and not cut:
                asked = request._replace(queues=[queue], limit=request.limit - len(claims))
                named = None if request_id is None else f"{request_id}@{queue}"
                with failures.noted():
                    part = self._queues.claims(queue)
                    given, cut = await (part.round if len(queues) > 1 else part.moves).give(asked, named)
                    claims += given
        # what was claimed is the caller's, whatever became of the other queues
        failures.throw_unless(bool(claims))
        if not claims and not all(map(self._queues.has, queues)):
            # a queue that nobody knows cannot tell
            await self._queues.refuse_if_moved()
        # rescue must find them when this process dies
        await self._queues.seen(claim.job.queue for claim in claims)
        return claims

    async def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        """Write how claims ended, those of each queue together."""

        async def settle(moves: Moves, part: Sequence[Settlement]) -> list[SettleResult]:
            refused = [refusal_of(settlement) for settlement in part]
            rest = [one for one, error in zip(part, refused, strict=True) if error is None]
            results = iter(await moves.settle(rest, request_id))
            return [next(results) if error is None else error for error in refused]

        with_jobs = {queue_of(one.token) for one in settlements if one.then}

        async def find(queue: str) -> Part:
            return await self._queues.settling(queue, with_jobs=queue in with_jobs)

        return await self._by_token(settlements, [one.token for one in settlements], settle, Settled.LOST, find)

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for `lease` from now.

        Of those in a queue that does not answer nothing is known. That is raised, unless there is something to tell of
        the others, which would not be told again: then they are said to hold, until the next time.
        """
        queues = [queue_of(token) for _, token in claims]
        if len(set(queues)) == 1:
            return await self._parts(claims, queues, lambda moves, part: moves.renew(part, lease), None, self._held)
        answers = [None if queue is None else _NOT_KNOWN for queue in queues]

        async def renew(queue: str, places: Sequence[int]) -> None:
            renewed = await self._queues.claims(queue).round.renew([claims[at] for at in places], lease)
            for at, answer in zip(places, renewed, strict=True):
                answers[at] = answer

        failures = Failures()
        parts = _places_of(queues)
        await failures.gather([renew(*part) for part in parts.items()])
        found = [answers[at] for places in parts.values() for at in places]
        failures.throw_unless(any(one is None or one.cancel_requested for one in found))
        return answers

    async def note(self, notes: Sequence[Note]) -> list[bool]:
        """Write progress and log lines of running jobs."""
        return await self._by_token(notes, [note.token for note in notes], lambda moves, part: moves.note(part), False)  # noqa: FBT003

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        await self._queues.refuse_if_moved()
        return await self._by_id(ids, lambda moves, part: moves.cancel(part, retention), CancelOutcome.NOT_FOUND)

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        await self._queues.refuse_if_moved()
        return await self._by_id(ids, lambda moves, part: moves.retry(part), Changed.NOT_FOUND)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._by_id(ids, lambda moves, part: moves.delete(part), Changed.NOT_FOUND)

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        await self._queues.refuse_if_moved()
        return await self._by_id(ids, lambda moves, part: moves.reschedule(part, run_at), Changed.NOT_FOUND)

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue."""
        await (await self._queues.of(queue)).moves.set_paused(queue, paused=paused)

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims, one queue after the other."""
        failures = Failures()
        queues = request.queues
        names = await self._queues.names_in_round(failures) if queues is None else dict.fromkeys(queues)
        rescued: list[Rescued] = []
        for name in names:
            if len(rescued) < request.limit:
                asked = request._replace(queues=[name], limit=request.limit - len(rescued))
                with failures.noted():
                    part = await self._queues.known(name, in_round=True)
                    rescued += [] if part is None else await part.round.rescue(asked, retention)
        failures.throw_unless(bool(rescued))
        return rescued

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        done = 0
        failures = Failures()
        for name in await self._queues.names_in_round(failures):
            if done < limit:
                with failures.noted():
                    part = await self._queues.of(name, in_round=True)
                    done += await part.round.promote(limit=limit - done)
        failures.throw_unless(done > 0)
        return done

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        done = await self._queues.home.moves.prune(retention, limit=limit)
        failures = Failures()
        for name in await self._queues.names():
            if done < limit:
                with failures.noted():
                    done += await (await self._queues.of(name)).round.prune(retention, limit=limit - done)
        failures.throw_unless(done > 0)
        return done

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule, which is kept with the queue of its jobs."""
        return await self._schedules.write(schedule, expected=expected)

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return await self._schedules.remove(schedule_id)

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        return await self._schedules.fire(firing)

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        return await self._queues.home.moves.kv_write(write)

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        return await self._queues.home.moves.lock(name, holder, ttl)

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return await self._queues.home.moves.unlock(name, holder)

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._queues.home.moves.beat(server)
        await self._queues.seen(server.queues)

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._queues.home.moves.leave(server_id)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._queues.home.moves.write_audit(entries)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add up how long attempts took, of all queues together."""
        await self._queues.home.moves.write_timings(timings)

    async def _by_token(
        self,
        asked: Sequence[A],
        tokens: Sequence[Token],
        do: Callable[[Moves, Sequence[A]], Awaitable[list[R]]],
        otherwise: R,
        find: Callable[[str], Awaitable[Part]] | None = None,
    ) -> list[R]:
        """Let each queue do its part; a token names the queue, and one that does not is nobody's."""
        return await self._parts(asked, [queue_of(token) for token in tokens], do, otherwise, find or self._held)

    async def _held(self, queue: str) -> Part:
        return await self._queues.settling(queue, with_jobs=False)

    async def _by_id(
        self, ids: Sequence[JobId], do: Callable[[Moves, Sequence[JobId]], Awaitable[list[R]]], otherwise: R
    ) -> list[R]:
        """Let each queue do its part, once it is known where each job is."""
        places = await self._queues.places_of(ids)
        return await self._parts(ids, [places.get(job_id) for job_id in ids], do, otherwise, self._queues.of)

    async def _parts(
        self,
        asked: Sequence[A],
        queues: Sequence[str | None],
        do: Callable[[Moves, Sequence[A]], Awaitable[list[R]]],
        otherwise: R,
        find: Callable[[str], Awaitable[Part]],
    ) -> list[R]:
        answers = [otherwise] * len(asked)
        parts = _places_of(queues)

        async def one(queue: str, places: Sequence[int]) -> None:
            part = await do((await find(queue)).moves, [asked[at] for at in places])
            for at, answer in zip(places, part, strict=True):
                answers[at] = answer

        if len(parts) == 1:
            await one(*parts.popitem())
            return answers
        # each does what it can before the first failure is told
        for failure in await asyncio.gather(*[one(*part) for part in parts.items()], return_exceptions=True):
            if failure is not None:
                raise failure
        return answers


def _places_of(queues: Sequence[str | None]) -> dict[str, list[int]]:
    """Return where in what was asked for each queue stands."""
    parts: defaultdict[str, list[int]] = defaultdict(list)
    for at, queue in enumerate(queues):
        if queue is not None:
            parts[queue].append(at)
    return parts
