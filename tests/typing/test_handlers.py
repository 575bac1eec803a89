"""What type checkers know of handlers, by mypy and pyright alike.

Every `type: ignore` here stands where both must see an error: `make types` fails when one of them sees none. And what a
checker refuses is refused at run time too.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from typing import Any, assert_type

import pytest

import windlass
from windlass import (
    App,
    BlockingHandle,
    Call,
    Context,
    Enqueued,
    Handle,
    Handler,
    InvalidValue,
    Job,
    NewJob,
    Schedule,
)

WRONG = (TypeError, InvalidValue)


class Pool:
    pass


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with App("memory://") as app:
        yield app


async def test_an_enqueue_takes_what_the_function_takes(app: App) -> None:
    @app.job
    async def send(user_id: int, *, locale: str = "en") -> str:
        return f"{user_id} {locale}"

    assert_type(await send.enqueue(42, locale="sv"), Handle[str])
    assert_type(await send.enqueue(user_id=42), Handle[str])
    assert_type(send.call(42), Call[str])
    assert_type(send(42), Coroutine[Any, Any, str]).close()
    with pytest.raises(WRONG):
        await send.enqueue("42")  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        await send.enqueue()  # type: ignore[call-arg]
    with pytest.raises(WRONG):
        await send.enqueue(42, "sv")  # type: ignore[call-arg]
    with pytest.raises(WRONG):
        await send.enqueue(42, colour="red")  # type: ignore[call-arg]
    with pytest.raises(WRONG):
        send.call(None)  # type: ignore[arg-type]


async def test_a_handler_is_one_whatever_its_function(app: App) -> None:
    @app.job
    async def first(number: int) -> str:
        return str(number)

    @app.job
    def second(number: int) -> str:
        return str(number)

    handlers: list[Handler[[int], str]] = [first, second]

    assert [handler.kind for handler in handlers] == ["first", "second"]


async def test_options_keep_what_the_function_takes(app: App) -> None:
    @app.job(queue="email", max_attempts=5)
    async def send(user_id: int) -> list[str]:
        return [str(user_id)]

    options = send.options(delay=60, priority=windlass.PRIORITY_HIGH)

    assert_type(await options.enqueue(42), Handle[list[str]])
    assert_type(options.call(42), Call[list[str]])
    with pytest.raises(WRONG):
        await options.enqueue("42")  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        options.call()  # type: ignore[call-arg]
    with pytest.raises(WRONG):
        send.options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(WRONG):
        app.job(colour="red")  # type: ignore[call-overload]


async def test_a_plain_function_has_the_type_of_its_value(app: App) -> None:
    @app.job
    def double(number: int) -> int:
        return 2 * number

    @app.job(process=False)
    def nothing() -> None:
        pass

    assert_type(double(2), int)
    assert_type(await double.enqueue(2), Handle[int])
    assert_type(await nothing.enqueue(), Handle[None])
    with pytest.raises(WRONG):
        await double.enqueue([2])  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        await nothing.enqueue(1)  # type: ignore[call-arg]


async def test_a_context_that_comes_first_is_not_given_by_callers(app: App) -> None:
    @app.job
    async def send(ctx: Context, user_id: int) -> str:
        return f"{ctx} {user_id}"

    @app.job(queue="email")
    def post(ctx: Context, *, user_id: int) -> str:
        return f"{ctx} {user_id}"

    assert_type(await send.enqueue(42), Handle[str])
    assert_type(await post.enqueue(user_id=42), Handle[str])
    with pytest.raises(WRONG):
        await send.enqueue("42")  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        await post.enqueue(42)  # type: ignore[call-arg]


async def test_what_is_given_may_be_left_out(app: App) -> None:
    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        yield Pool()

    @app.job
    async def send(user_id: int, pool: Pool = windlass.given(), *, ctx: Context = windlass.given()) -> str:
        return f"{user_id} {pool} {ctx}"

    assert_type(await send.enqueue(42), Handle[str])


async def test_a_first_parameter_that_could_be_anything_is_not_taken_for_a_context(app: App) -> None:
    @app.job
    async def keep(value: Any, count: int = 1) -> int:  # noqa: ANN401 - the point of it
        return len(str(value)) * count

    @app.job
    def note(value: object) -> None:
        pass

    # mypy knows nothing of a handler with Any in its first place, pyright all but its arguments
    await keep.enqueue("x", count=2)
    await keep.enqueue(value="x")
    assert_type(await note.enqueue(1), Handle[None])


async def test_a_result_has_the_type_that_the_function_returns() -> None:
    async with App("memory://", eager=True) as app:

        @app.job
        async def add(left: int, right: int) -> int:
            return left + right

        handle = await add.enqueue(1, 2)

        assert assert_type(await handle.result(), int) == 3
        assert_type(await handle.job(), Job)
        assert_type(await app.enqueue_many(add.call(n, n) for n in range(2)), list[Handle[int]])


def test_blocking_calls_have_the_same_types() -> None:
    app = App("memory://", eager=True)

    @app.job
    async def add(left: int, right: int) -> int:
        return left + right

    handle = assert_type(add.enqueue_sync(1, 2), BlockingHandle[int])

    assert assert_type(handle.result(), int) == 3
    assert_type(add.options(delay=1).enqueue_sync(1, 2), BlockingHandle[int])
    with pytest.raises(WRONG):
        add.enqueue_sync("1", 2)  # type: ignore[arg-type]
    app.close_sync()


async def test_a_consumer_is_still_the_function(app: App) -> None:
    @app.consumer("raw")
    async def consume(job: Job) -> bytes:
        return job.payload

    @app.consumer("words")
    def count(job: Job) -> int:
        return len(job.payload)

    await app.client.enqueue("raw", b"hello")
    [job] = await app.client.jobs()

    assert assert_type(await consume(job), bytes) == b"hello"
    assert assert_type(count(job), int) == 5
    with pytest.raises(AttributeError):
        count(b"hello")  # type: ignore[arg-type]


async def test_a_handler_keeps_its_type_below_a_schedule(app: App) -> None:
    @app.every("*/5 * * * *", args={"user_id": 1}, catch_up="none", overlap="skip")
    @app.every(timedelta(hours=1), id="hourly", args={"user_id": 2})
    @app.job(queue="email")
    async def send(user_id: int) -> str:
        return str(user_id)

    @app.every(60, id="often")
    @app.job
    def count() -> int:
        return 1

    assert_type(await send.enqueue(42), Handle[str])
    assert_type(send.call(42), Call[str])
    assert_type(send(42), Coroutine[Any, Any, str]).close()
    assert_type(count(), int)
    with pytest.raises(WRONG):
        await send.enqueue("42")  # type: ignore[arg-type]


async def test_a_schedule_stands_above_a_handler_and_takes_what_there_is(app: App) -> None:
    def plain() -> None:
        pass

    with pytest.raises(WRONG):
        app.every("@daily")(plain)  # type: ignore[type-var]
    with pytest.raises(WRONG):
        app.every("@daily", catch_up="two")  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        app.every("@daily", overlap=True)  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        app.every(None)  # type: ignore[arg-type]


async def test_a_schedule_takes_a_job_or_a_call(app: App) -> None:
    @app.job
    async def send(user_id: int) -> str:
        return str(user_id)

    schedules = app.client.schedules

    assert_type(await schedules.put("one", "@daily", NewJob("email")), Schedule)
    assert_type(await schedules.put("two", timedelta(hours=1), send.call(42), overlap="skip"), Schedule)
    assert_type(await schedules.run_now("two"), Enqueued)
    assert_type(await schedules.get("two"), Schedule | None)
    assert_type(await schedules.list(), list[Schedule])
    with pytest.raises(WRONG):
        await schedules.put("three", "@daily", send)  # type: ignore[arg-type]
    with pytest.raises(WRONG):
        await schedules.put("three", "@daily", NewJob("email"), catch_up="two")  # type: ignore[arg-type]


def test_blocking_schedules_have_the_same_types() -> None:
    with windlass.connect_sync("memory://") as client:
        assert_type(client.schedules.put("one", 60, NewJob("email")), Schedule)
        assert_type(client.schedules.run_now("one"), Enqueued)
        assert_type(client.schedules.list(), list[Schedule])
        assert_type(client.schedules.remove("one"), bool)
        with pytest.raises(WRONG):
            client.schedules.put("one", 60, NewJob("email"), overlap="never")  # type: ignore[arg-type]
