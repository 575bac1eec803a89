"""All other calls whose replies get lost, and what must have come of each: what one call does, and its answer."""

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from proofs.lost_replies.cases import Case
from proofs.lost_replies.lossy import Bench
from windlass import CancelOutcome, NewJob
from windlass.core.ids import JobId
from windlass.core.job import Note
from windlass.core.requests import RescueRequest
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, FireOutcome, Firing, prepared

HOUR: Final = timedelta(hours=1)


async def note(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        held = await bench.store.note([Note(claim.job.id, claim.token, lines=[("info", "a line")])])
    bench.right("answer", held, [True])
    job = await bench.client.get(claim.job.id)
    bench.right("lines", job and [line.text for line in job.log], ["a line"])


async def cancel_a_waiting_job(bench: Bench) -> None:
    job = await bench.a_job(bench.new_name())
    async with bench.losing():
        outcome = await bench.client.cancel(job)
    bench.right("answer", outcome, CancelOutcome.REMOVED)
    bench.right("job", bench.state(job), ("cancelled", 0, 0))


async def cancel_a_running_job(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    async with bench.losing():
        outcome = await bench.client.cancel(claim.job.id)
    bench.right("answer", outcome, CancelOutcome.REQUESTED)


async def retry(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    await bench.client.dead_letter(claim, "why")
    async with bench.losing():
        await bench.client.retry(claim.job.id)
    bench.right("job", bench.state(claim.job.id), ("pending", 0, 1))


async def delete(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    await bench.client.dead_letter(claim, "why")
    async with bench.losing():
        await bench.client.delete(claim.job.id)
    bench.right("job", bench.state(claim.job.id), None)


async def reschedule(bench: Bench) -> None:
    job = await bench.a_job(bench.new_name())
    async with bench.losing():
        await bench.client.reschedule(job, datetime.now(UTC) + HOUR)
    bench.right("job", bench.state(job), ("scheduled", 0, 0))


async def rescue(bench: Bench) -> None:
    queue = bench.new_name()
    job = await bench.a_job(queue)
    await bench.client.claim(queue, lease=0)
    async with bench.losing():
        rescued = await bench.store.rescue(RescueRequest([queue]), Retention())
    bench.right("answer", [(each.id, each.state.value) for each in rescued], [(job, "pending")])
    bench.right("job", bench.state(job), ("pending", 1, 1))
    bench.right("history", bench.deliveries(job), [(1, "rescued")])


async def pause_and_resume(bench: Bench) -> None:
    queue = bench.new_name()
    job = await bench.a_job(queue)
    async with bench.losing("pause"):
        await bench.client.pause(queue)
    bench.right("claim while paused", await bench.client.claim(queue, lease=600), None)
    async with bench.losing("pause"):
        await bench.client.resume(queue)
    claim = await bench.client.claim(queue, lease=600)
    bench.right("claim", claim and claim.job.id, job)


async def compare_and_set(bench: Bench) -> None:
    key = bench.new_name()
    async with bench.losing():
        bench.holds("first", await bench.client.kv.compare_and_set(key, None, b"1"))
    async with bench.losing():
        bench.holds("second", await bench.client.kv.compare_and_set(key, b"1", b"2"))
    async with bench.losing():
        bench.holds("in vain", not await bench.client.kv.compare_and_set(key, b"1", b"3"))
    async with bench.losing():
        bench.holds("delete", await bench.client.kv.compare_and_delete(key, b"2"))
    bench.right("value", await bench.client.kv.get(key), None)


async def lock_and_unlock(bench: Bench) -> None:
    name = bench.new_name()
    async with bench.losing("lock"):
        bench.holds("lock", await bench.store.lock(name, "holder", HOUR))
    async with bench.losing("lock"):
        bench.holds("another's", not await bench.store.lock(name, "another", HOUR))
    async with bench.losing():
        bench.holds("unlock", await bench.store.unlock(name, "holder"))
    bench.right("locks", bench.lock_holders(name), [])


async def run_a_schedule_now(bench: Bench) -> None:
    name = bench.new_name()
    await bench.client.schedules.put(name, HOUR, NewJob(name))
    bench.enqueued += 1
    async with bench.losing():
        done = await bench.client.schedules.run_now(name)
    bench.holds("created", done.created)
    bench.right("jobs", bench.jobs_in(name), [done.id])


async def fire_a_schedule(bench: Bench) -> None:
    name = bench.new_name()
    await bench.client.schedules.put(name, HOUR, NewJob(name))
    bench.let_come_due(name)
    schedule = await bench.client.schedules.get(name)
    assert schedule is not None
    assert schedule.next_run_at is not None
    job_id = JobId(str(uuid4()))
    bench.enqueued += 1
    firing = Firing(
        name,
        schedule.revision,
        [prepared(schedule, job_id, schedule.next_run_at)],
        schedule.next_run_at,
        schedule.next_run_at + HOUR,
    )
    async with bench.losing():
        fired = await bench.store.fire(firing)
    bench.right("answer", fired, Fired(FireOutcome.DONE, job_id))
    bench.right("jobs", bench.jobs_in(name), [job_id])


async def change_a_schedule(bench: Bench) -> None:
    name = bench.new_name()
    async with bench.losing():
        await bench.client.schedules.put(name, HOUR, NewJob(name))
    async with bench.losing():
        await bench.client.schedules.pause(name)
    found = await bench.client.schedules.get(name)
    bench.holds("paused", found is not None and found.paused)
    async with bench.losing():
        bench.holds("remove", await bench.client.schedules.remove(name))
    bench.right("schedules", await bench.client.schedules.get(name), None)


OTHERS: Final[tuple[Case, ...]] = (
    note,
    cancel_a_waiting_job,
    cancel_a_running_job,
    retry,
    delete,
    reschedule,
    rescue,
    pause_and_resume,
    compare_and_set,
    lock_and_unlock,
    run_a_schedule_now,
    fire_a_schedule,
    change_a_schedule,
)
