"""Which jobs a server takes into its slots, how far it looks ahead, and how it holds what it took."""

import asyncio

import pytest

from windlass.app.app import App
from windlass.app.handle import Handle
from windlass.client.client import Client
from windlass.core.job import NewJob
from windlass.core.requests import CancelOutcome
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import MINUTE, SECOND, a_job, claim_one, found
from windlass.testing.conformance.reach import Reach, at_once
from windlass.testing.conformance.served import busy, ended, goes_by, quiet, serving, stands, until


class Gate:
    """Jobs that run until they are let through, one kind in two queues."""

    def __init__(self, app: App) -> None:
        """Register them."""
        self.begun: list[str] = []
        self.open = asyncio.Event()

        @app.job(max_attempts=2)
        async def wait(ctx: Context, name: str) -> None:
            self.begun.append(name)
            waits = [asyncio.create_task(event.wait()) for event in (self.open, ctx.cancelled)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

        @app.job
        async def pass_by(name: str) -> None:
            self.begun.append(name)

        self.wait = wait
        self.pass_by = pass_by


async def ahead_of(app: App, gate: Gate, count: int) -> list[Handle[None]]:
    """Have a server with one slot busy, and jobs claimed ahead of it: it has just finished some."""
    for number in range(5):
        await gate.pass_by.options(priority=1).enqueue(f"passed {number}")
    await gate.wait.options(priority=2).enqueue("waits")
    handles = [await gate.pass_by.enqueue(f"ahead {number}") for number in range(count)]
    await app.client.resume("default")
    await until(lambda: "waits" in gate.begun)
    await quiet(app)
    return handles


async def test_queues_are_worked_strictly_in_their_order_if_wanted(app: App) -> None:
    order: list[str] = []

    @app.job
    async def work(name: str) -> None:
        order.append(name)

    handles = [await work.options(queue=queue, priority=1 if queue == "c" else 5).enqueue(queue) for queue in "cabcab"]
    async with serving(app, concurrency=1, order="strict", queues=["b", "c", "a"]):
        for handle in handles:
            await ended(handle)

    assert "".join(order) == "bbccaa"


async def test_the_most_urgent_job_of_all_queues_is_first_if_wanted(app: App, store: Store) -> None:
    """Where each queue is for itself, a server that is asked for this does not start, and says why."""
    order: list[int] = []

    @app.job
    async def work(priority: int) -> None:
        order.append(priority)

    handles = [
        await work.options(queue=queue, priority=priority).enqueue(priority)
        for priority, queue in [(30, "a"), (10, "b"), (60, "c"), (20, "a"), (50, "b"), (40, "c")]
    ]
    async with at_once(store), serving(app, concurrency=1, order="priority", queues=["a", "b", "c"]):
        for handle in handles:
            await ended(handle)
        assert order == [10, 20, 30, 40, 50, 60]


async def test_no_queue_starves_by_default(app: App) -> None:
    order: list[str] = []

    @app.job
    async def work(queue: str) -> None:
        order.append(queue)
        await asyncio.sleep(0)

    for queue in ("a", "b"):
        await app.client.enqueue_many([NewJob(queue, {"queue": queue}, kind="work") for _ in range(100)])
    async with serving(app, concurrency=1, queues=["a", "b"]):
        await until(lambda: len(order) == 200)

    assert {"a", "b"} <= set(order[:150])


async def test_a_job_of_a_queue_with_a_long_lease_is_held_beside_one_with_a_short_lease(
    open_app: OpenApp, clock: FakeClock, reach: Reach
) -> None:
    queues = {"short": QueueSettings(lease=3), "long": QueueSettings(lease=600)}
    app = open_app(queues=queues)
    gate = Gate(app)

    async with serving(app, order="priority" if reach.over_queues else "strict", queues=["short", "long"]):
        handles = [await gate.wait.options(queue=queue).enqueue(queue) for queue in queues]
        await goes_by(app, clock, 30)

        assert sorted(gate.begun) == ["long", "short"]
        assert [(await handle.job()).delivery for handle in handles] == [1, 1]
        gate.open.set()
        for handle in handles:
            await ended(handle)


async def test_a_server_looks_ahead_by_what_it_has_just_finished(app: App, client: Client) -> None:
    gate = Gate(app)
    await client.pause("default")
    async with serving(app, concurrency=1):
        await ahead_of(app, gate, 80)

        running = (await client.stats("default")).running

        # no time has passed: what ended counts as the work of a hundredth of a second
        assert 1 < running <= 1 + 5 * 10
        gate.open.set()
        await until(lambda: len(gate.begun) == 86)


async def test_what_is_not_begun_within_a_second_goes_back_to_its_place_at_no_cost(
    app: App, client: Client, clock: FakeClock
) -> None:
    gate = Gate(app)
    await client.pause("default")
    async with serving(app, concurrency=1):
        handles = await ahead_of(app, gate, 10)
        before = [await handle.job() for handle in handles]

        await goes_by(app, clock, 1.3, step=0.1)

        after = [await handle.job() for handle in handles]
        assert (await client.stats("default")).running == 1
        assert {job.attempt for job in after} == {0}
        assert [job.run_at for job in after] == [job.run_at for job in before]
        gate.open.set()
        await until(lambda: len(gate.begun) == 16)
    assert gate.begun[6:] == [f"ahead {number}" for number in range(10)]


async def test_what_was_claimed_ahead_of_a_queue_that_is_paused_goes_back(app: App, client: Client) -> None:
    if not client.store.features.wakes_waiters:
        return
    gate = Gate(app)
    await client.pause("default")
    async with serving(app, concurrency=1):
        handles = await ahead_of(app, gate, 10)
        assert (await client.stats("default")).running > 1

        await client.pause("default")

        for handle in handles:
            await stands(handle, State.PENDING, attempt=0)
        gate.open.set()
        await quiet(app)
        assert len(gate.begun) == 6


async def test_a_job_that_is_cancelled_ahead_of_its_slot_never_runs(app: App, client: Client, store: Store) -> None:
    if not store.features.wakes_waiters:
        return
    gate = Gate(app)
    await client.pause("default")
    async with serving(app, concurrency=1):
        handles = await ahead_of(app, gate, 10)
        taken = [handle for handle in handles if (await handle.job()).state is State.RUNNING][-1]

        assert await taken.cancel() is CancelOutcome.REQUESTED
        # whoever sees this flag sees that one too
        [running] = [job for job in await client.jobs() if job.kind == "wait"]
        assert await client.cancel(running.id) is CancelOutcome.REQUESTED

        assert (await ended(taken)).state is State.CANCELLED
        await until(lambda: len(gate.begun) == 15)


async def test_a_job_that_may_kill_its_process_runs_alone(app: App, client: Client, clock: FakeClock) -> None:
    """No job beside it, and none claimed ahead of it, comes to its end by another's doing."""
    gate = Gate(app)
    alone = asyncio.Event()

    @app.job(max_attempts=2, kind="poison")
    async def poison() -> None:
        gate.begun.append("poison")
        await alone.wait()

    suspect = await poison.options(priority=1).enqueue()
    assert await client.claim("default", lease=5) is not None
    first = await gate.wait.enqueue("first")
    async with serving(app, concurrency=3):
        await until(lambda: "first" in gate.begun)
        await goes_by(app, clock, 5, step=0.5)
        await stands(suspect, State.RUNNING, attempt=2)
        last = await gate.pass_by.enqueue("last")
        await goes_by(app, clock, 2)
        assert gate.begun == ["first"]

        gate.open.set()
        await ended(first)
        await until(lambda: "poison" in gate.begun)
        await quiet(app)
        assert gate.begun == ["first", "poison"]
        assert (await client.stats("default")).running == 1

        alone.set()
        assert (await ended(suspect)).attempt == 2
        await ended(last)


async def test_of_jobs_that_may_kill_their_process_no_two_are_held_at_once(
    app: App, client: Client, clock: FakeClock
) -> None:
    """Each has one attempt left, which the claim has charged: the end of one would be the end of both."""
    gate = Gate(app)
    suspects = [await gate.wait.enqueue(f"suspect {number}") for number in range(3)]
    assert len(await client.claim_many("default", lease=1, limit=3)) == 3
    clock.advance(SECOND)
    assert await client.rescue() == 3

    async with serving(app, concurrency=10):
        await until(lambda: len(gate.begun) == 1)
        await quiet(app)
        held = [(job.state, job.attempt) for job in [await suspect.job() for suspect in suspects]]

        gate.open.set()
        assert sorted(held) == [(State.PENDING, 1), (State.PENDING, 1), (State.RUNNING, 2)]
        assert [(await ended(suspect)).attempt for suspect in suspects] == [2, 2, 2]


async def test_a_job_that_an_operator_retries_runs_beside_others(app: App, client: Client, clock: FakeClock) -> None:
    gate = Gate(app)
    handle = await gate.wait.options(max_attempts=1).enqueue("retried")
    assert await client.claim("default", lease=1) is not None
    clock.advance(SECOND)
    await client.rescue()
    assert (await handle.job()).state is State.DEAD
    await client.retry(handle.id)

    async with serving(app):
        await gate.wait.enqueue("another")
        await until(lambda: sorted(gate.begun) == ["another", "retried"])

        assert (await handle.job()).attempt == 1
        gate.open.set()
        assert (await ended(handle)).state is State.SUCCEEDED


@pytest.mark.parametrize("seconds", [9, 10, 29.75, 30, 30.25, 60, 95])
async def test_a_job_that_runs_for_about_as_long_as_its_lease_is_run_once(
    app: App, client: Client, clock: FakeClock, seconds: float
) -> None:
    begun = 0

    @app.job
    async def work() -> None:
        nonlocal begun
        begun += 1
        await clock.sleep(seconds)

    handle = await work.enqueue()
    async with serving(app):
        await until(lambda: begun == 1)
        await goes_by(app, clock, seconds - 1, step=0.25)
        assert await client.rescue() == 0
        await goes_by(app, clock, 1, step=0.25)
        job = await ended(handle)

    assert (begun, job.delivery, job.state) == (1, 1, State.SUCCEEDED)


async def test_an_attempt_that_lost_its_job_is_told_and_refused_and_the_server_lives(app: App, client: Client) -> None:
    reasons: list[str | None] = []
    second = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> str:
        if ctx.delivery == 1:
            await ctx.cancelled.wait()
            reasons.append(ctx.cancelled.reason)
            return "from the loser"
        await second.wait()
        return "from the winner"

    @app.job
    async def lives() -> str:
        return "lives"

    handle = await work.enqueue()
    async with serving(app) as server:
        await busy(server)
        assert await client.rescue(force=True) == 1
        await until(lambda: reasons == ["claim_lost"])
        await quiet(app)
        # the news of the rescue may still be on its way to the server
        await stands(handle, State.RUNNING, delivery=2)

        second.set()
        assert await soon(handle.result()) == "from the winner"
        assert await soon((await lives.enqueue()).result()) == "lives"

    job = await found(client, handle.id)
    assert (job.attempt, job.delivery) == (2, 2)


async def test_a_job_that_comes_back_to_the_same_server_is_held_again(
    app: App, client: Client, clock: FakeClock
) -> None:
    gate = Gate(app)
    handle = await gate.wait.options(max_attempts=5).enqueue("held")
    async with serving(app):
        await until(lambda: len(gate.begun) == 1)
        await client.rescue(force=True)
        await until(lambda: len(gate.begun) == 2)

        await goes_by(app, clock, 65)

        job = await handle.job()
        assert (job.state, job.delivery) == (State.RUNNING, 2)
        gate.open.set()
        await ended(handle)


async def test_two_servers_share_the_work_and_run_each_job_once(open_app: OpenApp) -> None:
    ran: list[int] = []
    apps = [open_app(), open_app()]

    async def work(number: int) -> None:
        ran.append(number)
        await asyncio.sleep(0)

    works = [app.job(work) for app in apps]
    handles = [await works[0].enqueue(number) for number in range(100)]
    async with serving(apps[0], concurrency=3), serving(apps[1], concurrency=3):
        for handle in handles:
            await ended(handle)

    assert sorted(ran) == list(range(100))


async def test_a_flagged_job_is_cancelled_without_running(app: App, store: Store, clock: FakeClock) -> None:
    ran: list[str] = []
    [flagged] = await store.enqueue([a_job(kind="work")])
    await claim_one(store, lease=MINUTE)
    await store.cancel([flagged.id], app.client.settings.retention)
    clock.advance(MINUTE)

    @app.job
    async def work() -> None:
        ran.append("it")

    async with serving(app):
        job = await ended(work.handle(flagged.id))

    assert (job.state, job.delivery, ran) == (State.CANCELLED, 2, [])
