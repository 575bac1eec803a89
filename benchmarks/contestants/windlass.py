"""Windlass by its public client, on each store with default settings."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import windlass
from benchmarks.measuring.contestant import Arrived, Contestant, Measure, Outcome, Role, Trial
from benchmarks.measuring.workload import BULK, CALLERS, QUEUE, Stopwatch, chunks, number_of, payload, payloads
from benchmarks.servers import postgres_databases, redis_databases
from benchmarks.servers.our_loop import on_our_loop
from benchmarks.servers.store_urls import (
    MAIN,
    Url,
    http_url,
    memory_url,
    postgres_url,
    redis_url,
    slatedb_url,
    sqlite_url,
)
from benchmarks.workloads import held_snapshot, large
from benchmarks.workloads.latency import LIMIT, claim_figures
from benchmarks.workloads.loops import LEASE, drain, fill
from benchmarks.workloads.pickup import WARM_UP, pick_up, turns

WAIT = timedelta(seconds=5)


async def enqueue_one(trial: Trial, *, url: Url) -> Outcome:
    """Enqueue one job after the other, each awaited."""
    values = payloads(range(trial.jobs))
    async with windlass.connect(url(trial.folder, MAIN)) as client:
        done = 0
        watch = Stopwatch(trial.seconds)
        for value in values:
            await client.enqueue(QUEUE, value)
            done += 1
            if watch.is_over():
                break
        return Outcome(watch.figures(done))


async def enqueue_callers(trial: Trial, *, url: Url) -> Outcome:
    """Enqueue from 64 coroutines, each awaiting its own calls one after the other."""
    share = max(1, trial.jobs // CALLERS)
    async with windlass.connect(url(trial.folder, MAIN)) as client:
        watch = Stopwatch(trial.seconds)

        async def call(caller: int) -> int:
            for done in range(share):
                if watch.is_over():
                    return done
                await client.enqueue(QUEUE, payload(caller * share + done))
            return share

        done = await asyncio.gather(*[call(caller) for caller in range(CALLERS)])
        return Outcome(watch.figures(sum(done)))


async def enqueue_many(trial: Trial, *, url: Url) -> Outcome:
    """Enqueue batches of 1,000; making the `NewJob`s is part of it."""
    batches = [payloads(numbers) for numbers in chunks(trial.jobs, BULK)]
    async with windlass.connect(url(trial.folder, MAIN)) as client:
        done = 0
        watch = Stopwatch(trial.seconds)
        for batch in batches:
            await client.enqueue_many([windlass.NewJob(QUEUE, value) for value in batch])
            done += len(batch)
            if watch.is_over():
                break
        return Outcome(watch.figures(done))


async def claim_loop(trial: Trial, *, url: Url, keep: timedelta | None) -> Outcome:
    """Drain by `claim_many(limit=100)` in two loops with concurrent acks."""
    async with windlass.connect(url(trial.folder, MAIN), keep_succeeded=keep) as client:
        await fill(client, trial.jobs)
        watch = Stopwatch(trial.drain_seconds)
        acked = await drain(client, trial.jobs, watch=watch)
        figures = watch.figures(acked)
        stats = await client.stats(QUEUE)
    if stats.pending + acked != trial.jobs or stats.running:
        message = f"{acked} acked and {stats.pending} pending of {trial.jobs} jobs, {stats.running} still running"
        raise RuntimeError(message)
    return Outcome(figures)


async def claim_latency(trial: Trial, *, url: Url) -> Outcome:
    """Time each `claim_many(limit=20)` of a drain, the acks outside."""
    milliseconds: list[float] = []
    async with windlass.connect(url(trial.folder, MAIN), keep_succeeded=timedelta(0)) as client:
        await fill(client, trial.jobs)
        while True:
            began = time.perf_counter()
            claims = await client.claim_many([QUEUE], limit=LIMIT, lease=LEASE)
            ended = time.perf_counter()
            if not claims:
                return Outcome(claim_figures(milliseconds))
            milliseconds.append((ended - began) * 1e3)
            await asyncio.gather(*[client.ack(claim) for claim in claims])


async def pickup(trial: Trial, *, name: str, url: Url) -> Outcome:
    """Enqueue to an idle `claim(wait=...)` in another process."""
    async with windlass.connect(url(trial.folder, MAIN)) as client:
        with pick_up(name, trial.folder, trial.pickups) as run:
            for number, gap in run.turns():
                await asyncio.sleep(gap)
                value = payload(number)
                run.sending(number)
                await client.enqueue(QUEUE, value)
            return Outcome(samples={"pickup": await asyncio.to_thread(run.milliseconds)})


async def pickup_inside(trial: Trial, *, url: Url) -> Outcome:
    """Enqueue to an idle `claim(wait=...)` of the same process."""
    sent: dict[int, float] = {}
    milliseconds: list[float] = []
    async with windlass.connect(url(trial.folder, MAIN), keep_succeeded=timedelta(0)) as client:

        async def take() -> None:
            while len(milliseconds) < WARM_UP + trial.pickups:
                claim = await client.claim(QUEUE, lease=LEASE, wait=WAIT)
                if claim is not None:
                    milliseconds.append((time.perf_counter() - sent[number_of(claim.job.payload)]) * 1e3)
                    await client.ack(claim)

        async with asyncio.TaskGroup() as group:
            group.create_task(take())
            for number, gap in turns(range(WARM_UP + trial.pickups)):
                await asyncio.sleep(gap)
                value = payload(number)
                sent[number] = time.perf_counter()
                await client.enqueue(QUEUE, value)
    return Outcome(samples={"pickup": milliseconds[WARM_UP:]})


def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived, *, url: Url) -> None:
    """Claim one job at a time, asleep until it comes."""

    async def loop() -> None:
        left = count
        async with windlass.connect(url(folder, MAIN), keep_succeeded=timedelta(0)) as client:
            ready()
            while left:
                claim = await client.claim(QUEUE, lease=LEASE, wait=WAIT)
                if claim is not None:
                    arrived(claim.job.payload)
                    await client.ack(claim)
                    left -= 1

    on_our_loop(loop())


def _run(measure: Callable[[Trial], Awaitable[Outcome]]) -> Measure:
    async def main(trial: Trial) -> Outcome:
        return await measure(trial)

    return lambda trial: on_our_loop(main(trial))


def _measures(url: Url) -> dict[str, Measure]:
    return {
        "enqueue_one": _run(partial(enqueue_one, url=url)),
        "enqueue_callers": _run(partial(enqueue_callers, url=url)),
        "enqueue_many": _run(partial(enqueue_many, url=url)),
        "claim_deleted": _run(partial(claim_loop, url=url, keep=timedelta(0))),
        "claim_kept": _run(partial(claim_loop, url=url, keep=timedelta(days=1))),
        "claim_latency": _run(partial(claim_latency, url=url)),
    }


def _contestant(name: str, url: Url, durability: Callable[[Path], str], **more: Measure) -> Contestant:
    """Return the client on a store that other processes reach too; `more` are measurements of that store alone."""
    return Contestant(
        name=name,
        role=Role.OURS,
        distribution="windlass",
        module="windlass",
        how="the async client; drained by two loops of claim_many(limit=100) with concurrent acks",
        durability=durability,
        measures=_measures(url)
        | {"pickup": _run(partial(pickup, name=name, url=url))}
        | {crowd: _run(partial(large.compare, crowd=made, url=url)) for crowd, made in large.CROWDS.items()}
        | more,
        first_use="windlass.connect('memory://')",
        prepare={crowd: partial(large.prepare, crowd=made, url=url) for crowd, made in large.CROWDS.items()},
        consume=partial(consume, url=url),
    )


SQLITE = _contestant("windlass", sqlite_url, lambda _: "FULL")
POSTGRES = _contestant(
    "windlass-postgres", postgres_url, postgres_databases.durability, large_snapshot=_run(held_snapshot.by_client)
)
REDIS = _contestant("windlass-redis", redis_url, redis_databases.durability)
HTTP = _contestant("windlass-http", http_url, lambda _: "FULL")
DIRECTLY = replace(
    _contestant("directly", sqlite_url, lambda _: "FULL"), role=Role.PEER, how="the same client on the file itself"
)
"""What HTTP costs is measured against this."""

_ALONE = _contestant("windlass-slatedb", slatedb_url, lambda _: "survives processes, not power")
SLATEDB = replace(
    _ALONE,
    measures={name: measure for name, measure in _ALONE.measures.items() if name != "pickup"}
    | {"pickup_inside": _run(partial(pickup_inside, url=slatedb_url))},
    consume=None,
)
"""One process owns the store: who enqueues and who claims are in one."""

MEMORY = Contestant(
    name="windlass-memory",
    role=Role.MODEL,
    distribution="windlass",
    module="windlass",
    how="the same client on memory://",
    durability=lambda _: "lives with its process",
    measures=_measures(memory_url),
)
