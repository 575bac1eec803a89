"""Commands where every queue has a hash tag of its own: each goes to several queues, and their answers are joined."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, TypeVar, cast

from windlass.core import commands
from windlass.core.errors import NotAtomicHere
from windlass.core.job import Claim
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    Claimed,
    ClaimRequest,
    Renewed,
    Rescued,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.store_calls import Command, Part, table_of
from windlass.stores.redis import keyspace
from windlass.stores.redis.claim import give
from windlass.stores.redis.failures import Failures
from windlass.stores.redis.keyspace import Keyspace
from windlass.stores.redis.one_queue import queue_of, refusal_of
from windlass.stores.redis.queues import Queues

A = TypeVar("A")
R = TypeVar("R")

_NOT_KNOWN: Final = Renewed(datetime.fromtimestamp(0, UTC), cancel_requested=False)
"""Stands for a claim in a queue that does not answer: no end is known to which it holds."""


async def claim(queues: Queues, request: ClaimRequest, request_id: str | None) -> Claimed:
    """Give up to `limit` ready jobs, one queue after the other."""
    names = list(dict.fromkeys(request.queues))
    if request.by_priority and len(names) > 1:
        raise NotAtomicHere("a claim by priority over several queues", "claim from one queue after the other")
    claims: list[Claim] = []
    cut = False
    failures = Failures()
    for name in names:
        if len(claims) < request.limit and not cut:
            asked = request._replace(queues=[name], limit=request.limit - len(claims))
            named = None if request_id is None else f"{request_id}@{name}"
            with failures.noted():
                queue = queues.claims(name)
                given, cut = await give(queue.round if len(names) > 1 else queue.caller, asked, named)
                claims += given
    # what was claimed is the caller's, whatever became of the other queues
    failures.throw_unless(bool(claims))
    if not claims and not all(map(queues.has, names)):
        # a queue that nobody knows cannot tell
        await queues.refuse_if_moved()
    # rescue must find them when this process dies
    await queues.seen(claim.job.queue for claim in claims)
    return Claimed(claims)


async def settle(queues: Queues, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
    """Write how claims ended, those of each queue together."""
    with_jobs = {queue_of(one.token) for one in settlements if one.then}

    async def settle_in(name: str, part: Sequence[Settlement]) -> list[SettleResult]:
        queue = await queues.settling(name, with_jobs=name in with_jobs)
        refused = [refusal_of(settlement) for settlement in part]
        rest = [one for one, error in zip(part, refused, strict=True) if error is None]
        results = iter(await queue.settle(rest, request_id))
        return [next(results) if error is None else error for error in refused]

    return await _by_queue(settlements, [queue_of(one.token) for one in settlements], settle_in, Settled.LOST)


async def renew(queues: Queues, command: commands.RenewClaims) -> list[Renewed | None]:
    """Let these claims hold for `lease` from now.

    Of those in a queue that does not answer nothing is known. That is raised, unless there is something to tell of
    the others, which would not be told again: then they are said to hold, until the next time.
    """
    of = [queue_of(token) for _, token in command.claims]
    one_queue = len(set(of)) == 1
    failures = Failures()

    async def renew_in(name: str, claims: Sequence[Any]) -> list[Renewed | None]:
        queue = queues.claims(name)
        part = replace(command, claims=claims)
        if one_queue:
            return await queue.do(part)
        with failures.noted():
            return await keyspace.do(queue.round, part)
        return [_NOT_KNOWN for _ in claims]

    answers = await _by_queue(command.claims, of, renew_in, None)
    failures.throw_unless(
        any(name is not None and (one is None or one.cancel_requested) for name, one in zip(of, answers, strict=True))
    )
    return answers


def each(otherwise: R) -> Callable[[Queues, Command[Any]], Awaitable[list[R]]]:
    """Return what lets each queue do its part of a command, and gives `otherwise` for what is in no queue."""

    async def run(queues: Queues, command: Command[Any]) -> list[R]:
        asked, by_id = command.touches.names(command), command.touches.part is Part.JOBS
        field = cast("str", command.touches.field)
        places = await queues.places_of(asked) if by_id else {}
        of = [places.get(one) if by_id else queue_of(one.token) for one in asked]

        async def run_in(name: str, part: Sequence[Any]) -> list[R]:
            queue = await queues.of(name) if by_id else queues.claims(name)
            return cast("list[R]", await queue.do(replace(cast("Any", command), **{field: part})))

        return await _by_queue(asked, of, run_in, otherwise)

    return run


async def _by_queue(
    asked: Sequence[A],
    queues: Sequence[str | None],
    run: Callable[[str, Sequence[A]], Awaitable[Sequence[R]]],
    otherwise: R,
) -> list[R]:
    """Let `run` answer each queue's part of what is asked for; return the answers in the order of `asked`."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, queue in enumerate(queues):
        if queue is not None:
            places[queue].append(at)
    answers = [otherwise] * len(asked)

    async def one(queue: str) -> None:
        for at, answer in zip(places[queue], await run(queue, [asked[at] for at in places[queue]]), strict=True):
            answers[at] = answer

    if len(places) == 1:
        await one(*places)
        return answers
    # each does what it can before the first failure is told
    for failure in await asyncio.gather(*map(one, places), return_exceptions=True):
        if failure is not None:
            raise failure
    return answers


async def until_limit(
    queues: Queues,
    limit: int,
    run: Callable[[Keyspace, str, int], Awaitable[R]],
    count: Callable[[R], int],
    named: Collection[str] | None = None,
) -> list[R]:
    """Let one queue after the other do its part, in a round, until as much is done as `limit` says; return the parts.

    Of the queues that are `named` those that nobody knows are left out; without it these are all queues.
    """
    failures = Failures()
    done, parts = 0, list[R]()
    for name in await queues.names_in_round(failures) if named is None else dict.fromkeys(named):
        if done < limit:
            with failures.noted():
                find = queues.of if named is None else queues.known
                queue = await find(name, in_round=True)
                if queue is not None:
                    parts.append(await run(queue, name, limit - done))
                    done += count(parts[-1])
    failures.throw_unless(done > 0)
    return parts


async def rescue(queues: Queues, command: commands.RescueClaims) -> list[Rescued]:
    """Take back claims."""
    request = command.request

    def take_back(queue: Keyspace, name: str, limit: int) -> Awaitable[list[Rescued]]:
        asked = request._replace(queues=[name], limit=limit)
        return keyspace.do(queue.round, replace(command, request=asked))

    parts = await until_limit(queues, request.limit, take_back, len, request.queues)
    return [*chain.from_iterable(parts)]


async def promote(queues: Queues, command: commands.PromoteJobs) -> int:
    """Make due jobs pending."""
    return await _sum_until_limit(queues, command)


async def prune(queues: Queues, command: commands.PruneRecords) -> int:
    """Delete records past their retention, first those that belong to no queue, of which none is a job."""
    await queues.home.do(command)
    return await _sum_until_limit(queues, command)


async def _sum_until_limit(queues: Queues, command: commands.PromoteJobs | commands.PruneRecords) -> int:
    def run(queue: Keyspace, _: str, limit: int) -> Awaitable[int]:
        return keyspace.do(queue.round, replace(command, limit=limit))

    return sum(await until_limit(queues, command.limit, run, int))


async def write_heartbeat(queues: Queues, command: commands.WriteHeartbeat) -> None:
    """Write that a server is live; it may have met queues whose names are not written down."""
    await queues.home.do(command)
    await queues.seen(command.server.queues)


COMMANDS: Final = table_of(
    commands.RenewClaims.by_coroutine(renew),
    commands.WriteNotes.by_coroutine(each(False)),  # noqa: FBT003 - an answer
    commands.CancelJobs.by_coroutine(each(CancelOutcome.NOT_FOUND)),
    commands.RetryJobs.by_coroutine(each(Changed.NOT_FOUND)),
    commands.DeleteJobs.by_coroutine(each(Changed.NOT_FOUND)),
    commands.RescheduleJobs.by_coroutine(each(Changed.NOT_FOUND)),
    commands.RescueClaims.by_coroutine(rescue),
    commands.PromoteJobs.by_coroutine(promote),
    commands.PruneRecords.by_coroutine(prune),
    commands.WriteHeartbeat.by_coroutine(write_heartbeat),
)
"""The coroutine function that executes a command which touches several queues, or more than what its facts say."""
