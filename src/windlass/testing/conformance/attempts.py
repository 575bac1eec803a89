"""How an attempt of a handler ends, and what that makes of its job."""

from datetime import timedelta
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.duration import Duration
from windlass.core.errors import JobDead, NotTransactional
from windlass.core.job import NewJob
from windlass.core.retry import Exponential, Fixed, NoRetry, RetryRule
from windlass.core.settings import QueueSettings
from windlass.core.signals import Cancel, PermanentFailure, Release, Retry, Snooze
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context, current
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import AT_ONCE, SECOND
from windlass.testing.conformance.served import ended, goes_by, serving, stands


class Oops(Exception):
    """What the handlers of these tests fail by."""


class BrokenPolicy:
    """Answers with what is no delay."""

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> Any:  # noqa: ANN401, ARG002
        """Return nonsense."""
        return "soon"


def broken(attempt: int, error: BaseException | None) -> Duration:
    """Raise, as a policy of somebody may."""
    raise RuntimeError(attempt) from error


def seven_times(attempt: int, error: BaseException | None) -> Duration | None:
    """Wait longer each time, if it is what is known."""
    return attempt * 7 if isinstance(error, Oops) else None


def never(_attempt: int, _error: BaseException | None) -> Duration | None:
    """Give up."""
    return None


def in_the_past(_attempt: int, _error: BaseException | None) -> Duration:
    """Return what is no delay."""
    return -1


async def test_a_permanent_failure_makes_the_job_dead_at_once(app: App) -> None:
    @app.job
    async def work() -> None:
        raise PermanentFailure("no such user")

    async with serving(app):
        job = await ended(await work.enqueue())

    assert (job.state, job.attempt, job.last_error) == (State.DEAD, 1, "PermanentFailure: no such user")


@pytest.mark.parametrize("value", [None, 0, "text", [1, {"a": None}], {"x": 1.5}])
async def test_what_a_handler_returns_is_the_result(app: App, value: object) -> None:
    @app.job
    async def here() -> object:
        return value

    @app.job
    def in_a_thread() -> object:
        return value

    async with serving(app):
        assert await soon((await here.enqueue()).result()) == value
        assert await soon((await in_a_thread.enqueue()).result()) == value


async def test_a_failed_attempt_is_retried_with_its_error_known(app: App) -> None:
    seen: list[tuple[int, int, str | None]] = []

    @app.job(retry=Fixed(0))
    async def work(ctx: Context) -> str:
        seen.append((ctx.attempt, ctx.delivery, ctx.previous_error))
        if ctx.attempt < 3:
            raise Oops(f"number {ctx.attempt}")
        return "at last"

    async with serving(app):
        handle = await work.enqueue()
        assert await soon(handle.result()) == "at last"
        job = await handle.job()

    assert seen == [(1, 1, None), (2, 2, "Oops: number 1"), (3, 3, "Oops: number 2")]
    assert [each.outcome for each in job.history] == ["failed", "failed", "succeeded"]
    assert job.history[0].failure is not None
    assert "raise Oops" in (job.history[0].failure.traceback or "")


async def test_a_job_without_attempts_left_is_dead(open_app: OpenApp) -> None:
    app = open_app(retry=Fixed(0))

    @app.job(max_attempts=2)
    async def work() -> None:
        raise Oops("again")

    async with serving(app):
        handle = await work.enqueue()
        with pytest.raises(JobDead, match="Oops: again"):
            await soon(handle.result())

    job = await handle.job()
    assert (job.state, job.attempt, job.delivery) == (State.DEAD, 2, 2)


@pytest.mark.parametrize(
    "rules, wait",
    [
        ((Fixed(5), Fixed(50), Fixed(500)), 5),
        ((None, Fixed(50), Fixed(500)), 50),
        ((None, None, Fixed(500)), 500),
        ((seven_times, None, None), 7),
        ((Fixed(5, retry_on=(OSError,)), None, None), None),
        ((Fixed(5, give_up_on=(Oops,)), None, None), None),
        ((NoRetry(), None, None), None),
        ((never, None, None), None),
    ],
)
async def test_a_retry_policy_is_the_jobs_or_the_queues_or_the_apps(
    open_app: OpenApp, clock: FakeClock, rules: tuple[RetryRule | None, ...], wait: float | None
) -> None:
    own, of_queue, of_app = rules
    app = open_app(**({} if of_app is None else {"retry": of_app}))
    if of_queue is not None:
        app.queue("default", retry=of_queue)
    options: dict[str, Any] = {} if own is None else {"retry": own}

    @app.job(**options)
    async def work() -> None:
        raise Oops

    async with serving(app):
        handle = await work.enqueue()
        if wait is None:
            assert (await ended(handle)).attempt == 1
        else:
            job = await stands(handle, State.SCHEDULED)
            assert job.run_at == clock.now() + timedelta(seconds=wait)


@pytest.mark.parametrize("rule", [broken, BrokenPolicy(), in_the_past])
async def test_where_a_retry_policy_fails_the_default_holds(
    app: App,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
    rule: Any,  # noqa: ANN401 - wrong ones too
) -> None:
    @app.job(retry=rule)
    async def work() -> None:
        raise Oops

    @app.job
    async def neighbour() -> str:
        return "done"

    async with serving(app):
        handle = await work.enqueue()
        job = await stands(handle, State.SCHEDULED)
        assert await soon((await neighbour.enqueue()).result()) == "done"

    assert timedelta(seconds=0.75) <= job.run_at - clock.now() <= timedelta(seconds=1.25)
    assert "the default holds" in caplog.text


async def test_a_retry_comes_after_its_delay(open_app: OpenApp, clock: FakeClock) -> None:
    app = open_app(retry=Exponential(base=4, jitter="none"))
    begun: list[float] = []

    @app.job(max_attempts=2)
    async def work() -> None:
        begun.append(clock.monotonic())
        raise Oops

    async with serving(app):
        handle = await work.enqueue()
        await stands(handle, State.SCHEDULED)
        await goes_by(app, clock, 3.5, step=0.5)
        assert len(begun) == 1
        await goes_by(app, clock, 0.5, step=0.05)
        assert (await ended(handle)).attempt == 2

    assert begun[1] == pytest.approx(4, abs=0.06)


async def test_a_handler_asks_for_another_attempt_at_its_own_time(app: App, clock: FakeClock) -> None:
    @app.job(max_attempts=2, retry=NoRetry())
    async def work() -> None:
        raise Retry("busy", after=90)

    async with serving(app):
        handle = await work.enqueue()
        job = await stands(handle, State.SCHEDULED)
        assert (job.attempt, job.last_error, job.run_at - clock.now()) == (1, "Retry: busy", 90 * SECOND)
        await handle.job()
        await app.client.run_now(handle.id)
        job = await ended(handle)

    assert (job.state, job.attempt, job.last_error) == (State.DEAD, 2, "Retry: busy")


async def test_a_snooze_puts_the_job_off_at_no_cost(app: App, clock: FakeClock) -> None:
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> int:
        if ctx.delivery < 3:
            raise Snooze(60)
        return ctx.attempt

    async with serving(app):
        handle = await work.enqueue()
        for delivery in (1, 2):
            job = await stands(handle, State.SCHEDULED, delivery=delivery)
            assert (job.attempt, job.last_error, job.run_at - clock.now()) == (0, None, 60 * SECOND)
            await app.client.run_now(handle.id)
        assert await soon(handle.result()) == 1


async def test_a_release_gives_the_job_back_to_its_place_at_no_cost(app: App) -> None:
    order: list[str] = []

    @app.job(max_attempts=1)
    async def work(ctx: Context, name: str) -> None:
        order.append(name)
        if ctx.delivery < 3:
            raise Release

    async with serving(app, concurrency=1):
        handles = await app.enqueue_many([work.call("a"), work.call("b")])
        jobs = [await ended(handle) for handle in handles]

    assert [(job.state, job.attempt, job.delivery) for job in jobs] == [(State.SUCCEEDED, 1, 3)] * 2
    assert order.index("b") < 3


async def test_a_handler_cancels_its_own_job(app: App) -> None:
    @app.job
    async def work() -> None:
        raise Cancel("out of date")

    async with serving(app):
        job = await ended(await work.enqueue())

    assert (job.state, job.history[0].outcome) == (State.CANCELLED, "cancelled")


@pytest.mark.parametrize("signal", [Retry(after=1), Snooze(1), Release(), Cancel(), PermanentFailure()])
async def test_a_signal_works_from_any_depth_and_from_a_thread(app: App, signal: Exception) -> None:
    states: dict[type[Exception], State] = {
        Retry: State.SCHEDULED,
        Snooze: State.SCHEDULED,
        Release: State.SUCCEEDED,
        Cancel: State.CANCELLED,
        PermanentFailure: State.DEAD,
    }

    def deep() -> None:
        if current().delivery == 1:
            raise signal

    @app.job
    async def here() -> None:
        deep()

    @app.job
    def in_a_thread() -> None:
        deep()

    async with serving(app):
        for work in (here, in_a_thread):
            await stands(await work.enqueue(), states[type(signal)])


async def test_a_payload_that_does_not_decode_is_dead_at_once_and_its_neighbours_run(app: App, client: Client) -> None:
    @app.job
    async def work(user: dict[str, int], *, times: int = 1) -> int:
        return user["id"] * times

    jobs = [NewJob("default", {"user": {"id": number}}, kind="work") for number in range(100)]
    jobs[50] = NewJob("default", {"user": {"id": "fifty"}}, kind="work")
    jobs[51] = NewJob("default", b"no JSON", kind="work")
    jobs[52] = NewJob("default", {"user": {}, "extra": 1}, kind="work")
    done = await client.enqueue_many(jobs)
    async with serving(app):
        ends = [await ended(work.handle(each.id)) for each in done]

    bad = [ends[number] for number in (50, 51, 52)]
    assert [(job.state, job.attempt) for job in bad] == [(State.DEAD, 1)] * 3
    assert "user" in (bad[0].last_error or "")
    assert "DecodeError" in (bad[0].last_error or "")
    assert sum(job.state is State.SUCCEEDED for job in ends) == 97


async def test_a_record_that_is_not_kept_goes_with_the_end_of_its_job(open_app: OpenApp, client: Client) -> None:
    app = open_app(queues={"default": QueueSettings(keep_succeeded=0)})

    @app.job
    async def work() -> str:
        return "nobody reads this"

    async with serving(app):
        handle = await work.enqueue()
        await soon(handle.wait())

    assert await client.get(handle.id) is None
    assert (await client.stats("default")).totals.succeeded == 1


async def test_a_job_that_enqueues_others_waits_for_none_of_them(app: App) -> None:
    @app.job
    async def leaf(number: int) -> int:
        return number

    @app.job
    async def root() -> list[int]:
        handles = await app.enqueue_many([leaf.call(number) for number in range(50)])
        return [await handle.result() for handle in handles]

    async with serving(app, concurrency=2):
        assert await soon((await root.enqueue()).result()) == list(range(50))


async def test_a_store_without_transactions_says_so_to_the_handler(open_app: OpenApp, store: Store) -> None:
    if store.features.transactional:
        return
    app = open_app(retry=AT_ONCE.retry)
    refused: list[type[Exception]] = []

    @app.job
    async def work(ctx: Context) -> None:
        try:
            async with ctx.transaction():
                pass
        except NotTransactional as error:
            refused.append(type(error))

    async with serving(app):
        assert (await ended(await work.enqueue())).state is State.SUCCEEDED

    assert refused == [NotTransactional]


async def test_the_traceback_of_a_failure_begins_with_the_code_of_the_handler(app: App) -> None:
    def deeper() -> None:
        raise RuntimeError("deep")

    @app.job(max_attempts=1)
    async def coroutine() -> None:
        deeper()

    @app.job(max_attempts=1)
    def function() -> None:
        deeper()

    async with serving(app):
        jobs = [await ended(await handler.enqueue()) for handler in (coroutine, function)]

    for job in jobs:
        failure = job.history[-1].failure
        assert failure is not None
        assert failure.traceback is not None
        first, *_ = [line for line in failure.traceback.splitlines() if line.startswith("  File")]
        assert first.endswith(f"in {job.kind}")
