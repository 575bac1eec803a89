"""Waiting for the end of a job: woken on every path to an end, for any number of waiters."""

import asyncio
from datetime import timedelta

from windlass.client.client import Client
from windlass.client.results import Completed, NotFound, TimedOut, WaitResult
from windlass.core.errors import ClientClosed
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep, outlast
from windlass.testing.conformance.given import UNKNOWN, claimed, found


async def _waiting(clock: FakeClock, client: Client, job_id: JobId) -> asyncio.Future[WaitResult]:
    """Start to wait, and return when the job was looked at and both waiter and watcher sleep."""
    return await asleep(clock, client.wait(job_id, 3_600), timers=2)


def _job(result: WaitResult) -> Job:
    assert isinstance(result, Completed)
    assert result.job is not None
    return result.job


async def test_an_unknown_id_is_not_waited_for(client: Client, woken: Woken) -> None:
    assert await woken(client.wait(UNKNOWN, 3_600)) == NotFound()


async def test_a_job_that_does_not_end_times_out(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    began = clock.now()

    assert await outlast(clock, client.wait(done.id, 5)) == TimedOut()

    assert clock.now() >= began + timedelta(seconds=5)


async def test_an_ack_wakes_the_waiter_when_no_record_stays(
    open_client: OpenClient, clock: FakeClock, woken: Woken
) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.ack(claim)

    assert await woken(waiting) == Completed(None)
    assert await client.get(done.id) is None


async def test_an_ack_wakes_the_waiter_with_the_record(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.ack(claim, result=b"fine")

    job = _job(await woken(waiting))
    assert (job.state, job.result) == (State.SUCCEEDED, b"fine")


async def test_a_dead_letter_wakes_the_waiter(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.dead_letter(claim, "no such user")

    job = _job(await woken(waiting))
    assert (job.state, job.last_error) == (State.DEAD, "no such user")


async def test_a_removed_job_wakes_the_waiter(open_client: OpenClient, clock: FakeClock, woken: Woken) -> None:
    client = await open_client(QueueSettings(keep_cancelled=0))
    done = await client.enqueue("email", b"")
    waiting = await _waiting(clock, client, done.id)

    await client.cancel(done.id)

    assert await woken(waiting) == Completed(None)


async def test_a_request_to_stop_wakes_no_waiter(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.cancel(done.id)

    clock.advance(3_600)
    assert await woken(waiting) == TimedOut()
    await client.ack(claim)


async def test_a_job_that_has_ended_is_not_waited_for(client: Client, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    await client.dead_letter(await claimed(client, "email"), "no")

    assert _job(await woken(client.wait(done.id, 0))).state is State.DEAD


async def test_every_waiter_is_woken(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    first = await _waiting(clock, client, done.id)
    rest = [await asleep(clock, client.wait(done.id, 3_600)) for _ in range(3)]

    await client.dead_letter(claim, "no")

    results = await woken(asyncio.gather(first, *rest))
    assert [_job(result).state for result in results] == [State.DEAD] * 4


async def test_rescue_to_dead_wakes_the_waiter(open_client: OpenClient, clock: FakeClock, woken: Woken) -> None:
    client = await open_client(QueueSettings(max_attempts=1))
    done = await client.enqueue("email", b"")
    await claimed(client, "email", lease=0)
    waiting = await _waiting(clock, client, done.id)

    await client.rescue()

    job = _job(await woken(waiting))
    assert job.state is State.DEAD
    assert "lease expired" in (job.last_error or "")


async def test_the_last_nack_wakes_the_waiter(open_client: OpenClient, clock: FakeClock, woken: Woken) -> None:
    client = await open_client(QueueSettings(max_attempts=1))
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.nack(claim, "boom")

    assert _job(await woken(waiting)).state is State.DEAD


async def test_a_cancelled_claim_wakes_the_waiter(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.cancel_claim(claim, "no")

    assert _job(await woken(waiting)).state is State.CANCELLED


async def test_an_end_through_another_client_wakes_the_waiter(
    open_client: OpenClient, clock: FakeClock, woken: Woken
) -> None:
    one, other = await open_client(), await open_client()
    done = await one.enqueue("email", b"")
    claim = await claimed(other, "email")
    waiting = await _waiting(clock, one, done.id)

    await other.ack(claim)

    assert _job(await woken(waiting)).state is State.SUCCEEDED


async def test_an_attempt_that_ends_is_not_the_end_of_the_job(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    waiting = await _waiting(clock, client, done.id)
    await client.nack(await claimed(client, "email"), "boom", delay=0)
    await client.snooze(await claimed(client, "email"), 0)
    await client.release(await claimed(client, "email"))
    assert not waiting.done()

    await client.ack(await claimed(client, "email"))

    assert _job(await woken(waiting)).state is State.SUCCEEDED


async def test_waiters_of_other_jobs_sleep_on(client: Client, clock: FakeClock, woken: Woken) -> None:
    one, other = await client.enqueue("email", b""), await client.enqueue("email", b"")
    first = await _waiting(clock, client, one.id)
    second = await asleep(clock, client.wait(other.id, 3_600))

    await client.cancel(one.id)

    await woken(first)
    assert not second.done()
    await client.cancel(other.id)
    assert _job(await woken(second)).state is State.CANCELLED


async def test_a_waiter_that_goes_away_disturbs_nobody(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    staying = await _waiting(clock, client, done.id)
    leaving = await asleep(clock, client.wait(done.id, 3_600))
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)

    await client.cancel(done.id)

    assert _job(await woken(staying)).state is State.CANCELLED


async def test_a_close_ends_every_wait(open_client: OpenClient, clock: FakeClock, woken: Woken) -> None:
    client = await open_client()
    done = await client.enqueue("email", b"")
    waiting = await _waiting(clock, client, done.id)

    await client.close()

    [ended] = await woken(asyncio.gather(waiting, return_exceptions=True))
    assert isinstance(ended, ClientClosed)


async def test_a_record_is_what_the_end_wrote(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await _waiting(clock, client, done.id)

    await client.ack(claim)

    assert _job(await woken(waiting)) == await found(client, done.id)
