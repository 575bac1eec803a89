import inspect
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated
from uuid import uuid4

import pytest

import windlass
from windlass import (
    PRIORITY_HIGH,
    App,
    Context,
    EncodeError,
    Exponential,
    InvalidName,
    InvalidValue,
    Job,
    NoCurrentJob,
    PayloadTooLarge,
    QueueSettings,
    Secret,
    Unique,
)
from windlass.handlers.registered import RunsIn


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with App("memory://") as app:
        yield app


def top_level(number: int) -> int:
    return number


class Pool:
    pass


async def the_job(app: App) -> Job:
    [job] = await app.client.jobs()
    return job


async def test_an_enqueue_keeps_a_job_of_the_functions_kind(app: App) -> None:
    @app.job(queue="email", max_attempts=5, priority=PRIORITY_HIGH)
    async def send_welcome(user_id: int, *, locale: str = "en") -> str:
        return f"{user_id} {locale}"

    handle = await send_welcome.enqueue(42, locale="sv")

    job = await handle.job()
    assert handle.created
    assert (job.kind, job.queue, job.max_attempts, job.priority) == ("send_welcome", "email", 5, PRIORITY_HIGH)
    assert (job.payload, job.codec) == (b'{"user_id":42,"locale":"sv"}', "json")


async def test_a_handler_goes_to_the_default_queue_with_the_settings_of_its_queue() -> None:
    queues = {"mine": QueueSettings(max_attempts=9)}
    async with App("memory://", queue="mine", max_attempts=7, priority=5, queues=queues) as app:

        @app.job
        async def send() -> None:
            pass

        await send.enqueue()

        job = await the_job(app)
        assert (job.queue, job.max_attempts, job.priority) == ("mine", 9, 5)


async def test_a_queue_may_be_set_before_the_app_is_opened() -> None:
    app = App("memory://")
    app.queue("email", max_attempts=9)

    @app.job(queue="email")
    async def send() -> None:
        pass

    await send.enqueue()

    assert (await the_job(app)).max_attempts == 9
    with pytest.raises(windlass.AlreadyRunning, match="before the app is opened"):
        app.queue("email", max_attempts=3)


async def test_options_hold_for_one_enqueue_and_leave_the_handler_as_it_is(app: App) -> None:
    @app.job(max_attempts=5)
    async def send(user_id: int) -> None:
        pass

    wanted = uuid4()
    options = send.options(
        delay=timedelta(hours=1),
        priority=7,
        queue="email",
        max_attempts=2,
        unique=Unique("key", until="finished"),
        headers={"a": "b"},
        tenant="acme",
        id=wanted,
        kv={"seen": b"1"},
    )
    handle = await options.enqueue(42)
    plain = await (await send.enqueue(1)).job()

    job = await handle.job()
    assert (job.id, job.queue, job.priority, job.max_attempts) == (str(wanted), "email", 7, 2)
    assert (job.unique_key, job.headers, job.tenant, job.state) == ("key", {"a": "b"}, "acme", windlass.State.SCHEDULED)
    assert await app.client.kv.get("seen") == b"1"
    assert (plain.queue, plain.max_attempts, plain.unique_key) == ("default", 5, None)


async def test_a_second_job_with_a_unique_key_is_the_first(app: App) -> None:
    @app.job
    async def send() -> None:
        pass

    first = await send.options(unique="key").enqueue()
    second = await send.options(unique="key").enqueue()

    assert (second.id, second.created) == (first.id, False)


async def test_a_wrong_argument_is_an_error_at_the_caller_and_nothing_is_kept(app: App) -> None:
    @app.job
    async def send(user_id: int, text: str = "") -> None:
        pass

    with pytest.raises(InvalidValue, match=r"send\(\): user_id: Expected int, got str"):
        await send.enqueue("42")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"send\(\) missing a required argument: 'user_id'"):
        await send.enqueue()  # type: ignore[call-arg]
    with pytest.raises(EncodeError):
        await send.enqueue(1, "\ud800")
    with pytest.raises(PayloadTooLarge):
        await send.enqueue(1, "x" * 2_000_000)
    assert await app.client.jobs() == []


async def test_calls_are_enqueued_together_in_their_order(app: App) -> None:
    @app.job
    async def send(number: int) -> int:
        return number

    handles = await app.enqueue_many(send.call(number) for number in range(100))

    jobs = await app.client.jobs()
    assert [job.payload for job in jobs] == [b'{"number":%d}' % number for number in range(100)]
    assert [handle.id for handle in handles] == [job.id for job in jobs]


async def test_a_bad_call_refuses_the_whole_batch(app: App) -> None:
    @app.job
    async def send(number: int) -> None:
        pass

    with pytest.raises(InvalidName):
        await app.enqueue_many([send.call(1), send.options(queue="no such queue").call(2)])
    with pytest.raises(InvalidValue, match="an app enqueues calls"):
        await app.enqueue_many([send])  # type: ignore[arg-type]
    assert await app.client.jobs() == []


def test_a_call_shows_its_kind_and_not_its_arguments() -> None:
    app = App("memory://")

    @app.job
    async def send(token: str) -> None:
        pass

    assert repr(send.call("secret")) == "<Call of send for queue 'default'>"
    assert send.call("secret").new_job().kind == "send"


def test_a_call_has_no_connection_of_its_own() -> None:
    app = App("memory://")

    @app.job
    async def send() -> None:
        pass

    with pytest.raises(InvalidValue, match=r"give connection= to app.enqueue_many"):
        send.options(connection=object()).call()


async def test_a_store_without_transactions_takes_no_connection(app: App) -> None:
    @app.job
    async def send() -> None:
        pass

    with pytest.raises((windlass.NotTransactional, InvalidValue)):
        await send.options(connection=object()).enqueue()


async def test_a_handler_is_still_the_function(app: App) -> None:
    @app.job
    async def add(left: int, right: int = 2) -> int:
        """Add."""
        return left + right

    @app.job
    def multiply(left: int, right: int) -> int:
        return left * right

    assert await add(1) == 3
    assert multiply(2, right=3) == 6
    assert (add.__name__, add.__doc__) == ("add", "Add.")
    assert add.kind == "add"
    assert inspect.iscoroutinefunction(add.function)


async def test_a_direct_call_takes_the_context_of_its_caller(app: App) -> None:
    @app.job
    async def send(ctx: Context, user_id: int) -> tuple[Context, int]:
        return ctx, user_id

    context = Context(None)  # type: ignore[arg-type]

    with pytest.raises(NoCurrentJob):
        _ = send(42)
    assert await send.function(context, 42) == (context, 42)
    assert await send(context, 42) == (context, 42)  # type: ignore[arg-type, call-arg]
    assert await send(user_id=42, ctx=context) == (context, 42)  # type: ignore[call-arg]


def test_a_direct_call_has_to_give_what_a_lifespan_provides() -> None:
    app = App("memory://")

    @app.job
    def send(user_id: int, pool: Pool = windlass.given()) -> tuple[int, Pool]:
        return user_id, pool

    pool = Pool()

    assert send(1, pool) == (1, pool)
    with pytest.raises(TypeError, match=r"send\(\) needs pool"):
        send(1)


def test_a_function_runs_where_its_form_says() -> None:
    app = App("memory://")

    @app.job
    async def on_the_loop() -> None:
        pass

    @app.job
    def in_a_thread() -> None:
        pass

    in_a_process = app.job(process=True)(top_level)

    assert on_the_loop.registered.runs_in is RunsIn.LOOP
    assert in_a_thread.registered.runs_in is RunsIn.THREAD
    assert in_a_process.registered.runs_in is RunsIn.PROCESS


def test_what_cannot_be_imported_by_name_cannot_run_in_a_process() -> None:
    app = App("memory://")

    def nested() -> None:
        pass

    with pytest.raises(InvalidValue, match="cannot run in a child process"):
        app.job(process=True)(nested)
    with pytest.raises(InvalidValue, match="cannot run in a child process"):
        app.job(process=True, kind="nothing")(lambda: None)


def test_what_yields_cannot_be_a_handler() -> None:
    app = App("memory://")

    with pytest.raises(InvalidValue, match="yields, and a handler returns"):

        @app.job
        async def numbers() -> AsyncIterator[int]:
            yield 1


def test_a_class_cannot_be_a_handler() -> None:
    app = App("memory://")

    with pytest.raises(InvalidValue, match=r"^Pool is a class, and a handler is a function"):
        app.job(Pool)


def test_a_misspelt_option_of_a_job_is_told_with_the_one_that_was_meant() -> None:
    app = App("memory://")

    with pytest.raises(TypeError, match=r"^@app.job has no option 'max_attempt': did you mean 'max_attempts'[?]$"):
        app.job(max_attempt=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^@app.job has no option 'colour': it takes kind, queue, max_attempts, "):
        app.job(colour="red")  # type: ignore[call-overload]


def test_options_go_by_name() -> None:
    app = App("memory://")

    with pytest.raises(InvalidValue, match=r"options go by name, @app.job\(queue='email'\)"):
        app.job("email")  # type: ignore[call-overload]


def test_what_is_registered_is_checked() -> None:
    app = App("memory://")
    register = app.job(timeout=60, retry=Exponential(base=5), aliases=["old"])(top_level).registered

    assert register.timeout == timedelta(minutes=1)
    assert register.retry == Exponential(base=5)
    assert app.handlers["old"] is app.handlers["top_level"] is register
    with pytest.raises(InvalidValue, match="max_attempts"):
        app.job(max_attempts=0, kind="a")(top_level)
    with pytest.raises(InvalidValue, match="priority"):
        app.job(priority=-1, kind="b")(top_level)
    with pytest.raises(InvalidValue, match="timeout"):
        app.job(timeout=-1, kind="c")(top_level)
    with pytest.raises(InvalidValue, match="retry is a policy"):
        app.job(retry=3, kind="d")(top_level)  # type: ignore[call-overload]
    with pytest.raises(InvalidValue, match="aliases are a list"):
        app.job(aliases="old", kind="e")(top_level)
    with pytest.raises(InvalidName, match="queue"):
        app.job(queue="", kind="f")(top_level)
    with pytest.raises(InvalidName, match="kind"):
        app.job(kind="")(top_level)
    with pytest.raises(InvalidName, match="kind"):
        app.job(lambda: None)
    assert set(app.handlers) == {"old", "top_level"}


def test_two_functions_cannot_do_one_kind() -> None:
    app = App("memory://")

    @app.job(aliases=["old"])
    def send() -> None:
        pass

    with pytest.raises(InvalidValue, match=r"kind 'send' is done by .*send already.*give one of them another kind="):

        @app.job(kind="send")
        def other() -> None:
            pass

    with pytest.raises(InvalidValue, match="kind 'old'"):
        app.job(kind="new", aliases=["old"])(top_level)
    assert app.handlers["send"] is send.registered


def test_a_function_that_is_made_anew_takes_the_place_of_the_former() -> None:
    app = App("memory://")
    app.job(aliases=["old"])(top_level)

    again = app.job(top_level)

    assert dict(app.handlers) == {"top_level": again.registered}


async def test_a_handle_can_be_had_by_id(app: App) -> None:
    @app.job
    async def send() -> None:
        pass

    handle = await send.enqueue()

    assert (await send.handle(handle.id).job()).id == handle.id


async def test_secret_parameters_are_known() -> None:
    app = App("memory://")

    @app.job
    async def login(name: str, password: Annotated[str, Secret]) -> None:
        pass

    assert login.secret_fields == ("password",)
