"""Enqueues, claims and settlements whose replies get lost, and what must have come of each: what one call does."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeAlias

from proofs.lost_replies.lossy import Bench
from windlass import NewJob, Unique

Case: TypeAlias = Callable[[Bench], Awaitable[None]]
GONE: Final = "gone"
"""A queue whose jobs are deleted when they have succeeded."""
HOUR: Final = timedelta(hours=1)


async def enqueue_one(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 1
    async with bench.losing("enqueue"):
        done = await bench.client.enqueue(queue, b"one")
    bench.holds("created", done.created)
    bench.right("jobs", bench.jobs_in(queue), [done.id])


async def enqueue_one_lost_twice(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 1
    async with bench.losing("enqueue", twice=True):
        done = await bench.client.enqueue(queue, b"one")
    bench.holds("created", done.created)
    bench.right("jobs", bench.jobs_in(queue), [done.id])


async def enqueue_keyed(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 1
    async with bench.losing():
        done = await bench.client.enqueue(queue, b"one", unique=Unique("key", until="finished"))
    bench.holds("created", done.created)
    bench.right("jobs", bench.jobs_in(queue), [done.id])
    again = await bench.client.enqueue(queue, b"two", unique=Unique("key", until="finished"))
    bench.right("the key is held by it", again, (done.id, False))


async def enqueue_keyed_that_is_held(bench: Bench) -> None:
    queue = bench.new_name()
    first = await bench.a_job(queue, unique=Unique("key", until="finished"))
    async with bench.losing():
        second = await bench.client.enqueue(queue, b"", unique=Unique("key", until="finished"))
    bench.right("answer", second, (first, False))


async def enqueue_a_batch(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 3
    async with bench.losing("enqueue"):
        done = await bench.client.enqueue_many([NewJob(queue, bytes([n])) for n in range(3)])
    bench.right("jobs", bench.jobs_in(queue), [each.id for each in done])
    bench.right("created", [each.created for each in done], [True] * 3)


async def enqueue_a_batch_with_a_key(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 2
    jobs = [
        NewJob(queue, b"1", unique="key", kv={queue: b"kept"}),
        NewJob(queue, b"2"),
        NewJob(queue, b"3", unique="key"),
    ]
    async with bench.losing():
        done = await bench.client.enqueue_many(jobs)
    bench.right("jobs", bench.jobs_in(queue), [done[0].id, done[1].id])
    bench.right("answers", [(each.id, each.created) for each in done][2], (done[0].id, False))
    bench.right("kv", await bench.client.kv.get(queue), b"kept")


async def enqueue_many_at_once(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 10
    async with bench.losing("enqueue"):
        done = await asyncio.gather(*(bench.client.enqueue(queue, bytes([n])) for n in range(10)))
    bench.right("jobs", bench.payloads_in(queue), {each.id: bytes([n]) for n, each in enumerate(done)})
    bench.right("created", [each.created for each in done], [True] * 10)


async def claim_some(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 5
    await bench.client.enqueue_many([NewJob(queue) for _ in range(5)])
    async with bench.losing("claim"):
        claims = await bench.client.claim_many(queue, limit=3, lease=600)
    told = [(claim.job.id, claim.token, claim.job.attempt, claim.delivery) for claim in claims]
    bench.right("claims", told, bench.held_in(queue))
    bench.right("how many", len(claims), 3)
    for claim in claims:
        await bench.client.ack(claim)
        bench.succeeded += 1


async def claim_lost_twice(bench: Bench) -> None:
    queue = bench.new_name()
    job = await bench.a_job(queue)
    async with bench.losing("claim", twice=True):
        claims = await bench.client.claim_many(queue, limit=3, lease=600)
    bench.right("claims", [claim.job.id for claim in claims], [job])
    bench.right("job", bench.state(job), ("running", 1, 1))


async def claim_of_a_kind(bench: Bench) -> None:
    queue = bench.new_name()
    await bench.a_job(queue, kind="another")
    job = await bench.a_job(queue, kind="wanted")
    async with bench.losing("claim"):
        claims = await bench.client.claim_many(queue, limit=3, lease=600, kinds=["wanted"])
    bench.right("claims", [claim.job.id for claim in claims], [job])
    bench.right("job", bench.state(job), ("running", 1, 1))


async def claim_of_a_due_job(bench: Bench) -> None:
    queue = bench.new_name()
    job = await bench.a_job(queue, delay=0.001)
    async with bench.losing("promote or claim"):
        claim = await bench.client.claim(queue, lease=600, wait=5)
    bench.right("claim", claim and claim.job.id, job)
    bench.right("job", bench.state(job), ("running", 1, 1))


async def claim_of_nothing(bench: Bench) -> None:
    queue = bench.new_name()
    async with bench.losing("claim"):
        claims = await bench.client.claim_many(queue, limit=3, lease=600)
    bench.right("claims", claims, [])


async def ack(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    bench.succeeded += 1
    async with bench.losing("succeed"):
        await bench.client.ack(claim)
    bench.right("job", bench.state(claim.job.id), ("succeeded", 1, 1))


async def ack_lost_twice(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    bench.succeeded += 1
    async with bench.losing("succeed", twice=True):
        await bench.client.ack(claim)
    bench.right("job", bench.state(claim.job.id), ("succeeded", 1, 1))


async def ack_and_forget(bench: Bench) -> None:
    claim = await bench.a_claim(GONE)
    bench.succeeded += 1
    async with bench.losing("forget"):
        await bench.client.ack(claim)
    bench.right("job", bench.state(claim.job.id), None)


async def ack_many_at_once(bench: Bench) -> None:
    queue = bench.new_name()
    bench.enqueued += 10
    bench.succeeded += 10
    await bench.client.enqueue_many([NewJob(queue) for _ in range(10)])
    claims = await bench.client.claim_many(queue, limit=10, lease=600)
    async with bench.losing("succeed"):
        await asyncio.gather(*(bench.client.ack(claim) for claim in claims))
    bench.right("jobs", bench.states_in(queue), {"succeeded": 10})


async def ack_with_a_result(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    bench.succeeded += 1
    async with bench.losing():
        await bench.client.ack(claim, {"answer": 42})
    job = await bench.client.get(claim.job.id)
    bench.right("result", job and bench.client.decode_result(job), {"answer": 42})


async def ack_with_next_jobs(bench: Bench) -> None:
    queue = bench.new_name()
    claim = await bench.a_claim(queue)
    bench.succeeded += 1
    bench.enqueued += 2
    async with bench.losing():
        await bench.client.ack(claim, then=[NewJob(f"{queue}-next"), NewJob(f"{queue}-next")], kv={queue: b"kept"})
    bench.right("next jobs", bench.parents_in(f"{queue}-next"), [claim.job.id] * 2)
    bench.right("kv", await bench.client.kv.get(queue), b"kept")


async def nack(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        await bench.client.nack(claim, "why", delay=HOUR)
    bench.right("job", bench.state(claim.job.id), ("scheduled", 1, 1))
    bench.right("history", bench.deliveries(claim.job.id), [(1, "failed")])


async def nack_of_the_last_attempt(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name(), max_attempts=1)
    async with bench.losing():
        await bench.client.nack(claim, "why")
    bench.right("job", bench.state(claim.job.id), ("dead", 1, 1))


async def dead_letter(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        await bench.client.dead_letter(claim, "why")
    bench.right("job", bench.state(claim.job.id), ("dead", 1, 1))


async def snooze(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        await bench.client.snooze(claim, HOUR)
    bench.right("job", bench.state(claim.job.id), ("scheduled", 0, 1))


async def release(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        await bench.client.release(claim)
    bench.right("job", bench.state(claim.job.id), ("pending", 0, 1))


async def cancel_claim(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        await bench.client.cancel_claim(claim, "why")
    bench.right("job", bench.state(claim.job.id), ("cancelled", 1, 1))


async def renew(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing("renew"):
        until = await bench.client.renew(claim, HOUR)
    bench.right("lease", bench.lease_end(claim.job.id), until)


CASES: Final[tuple[Case, ...]] = (
    enqueue_one,
    enqueue_one_lost_twice,
    enqueue_keyed,
    enqueue_keyed_that_is_held,
    enqueue_a_batch,
    enqueue_a_batch_with_a_key,
    enqueue_many_at_once,
    claim_some,
    claim_lost_twice,
    claim_of_a_kind,
    claim_of_a_due_job,
    claim_of_nothing,
    ack,
    ack_lost_twice,
    ack_and_forget,
    ack_many_at_once,
    ack_with_a_result,
    ack_with_next_jobs,
    nack,
    nack_of_the_last_attempt,
    dead_letter,
    snooze,
    release,
    cancel_claim,
    renew,
)
