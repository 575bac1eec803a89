from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from unittest.mock import ANY

import pytest

from windlass import App, Context, InvalidValue, Job, Secret
from windlass.testing import TestApp, assert_enqueued, assert_not_enqueued, in_memory

app = App("memory://")
START = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class Address:
    street: str
    number: int


@app.job(queue="email")
async def send(user_id: int, *, locale: str = "en") -> None:
    pass


@app.job
async def deliver(ctx: Context, to: Address, at: datetime) -> None:
    pass


@app.job
async def log_in(name: str, password: Annotated[str, Secret]) -> None:
    pass


@dataclass
class Card:
    number: Annotated[str, Secret]


@app.job
async def pay(cards: list[Card], total: int) -> None:
    pass


@app.job
async def count_them(count: int, queue: str) -> None:
    pass


@app.job
async def anything(**more: int) -> None:
    pass


@app.consumer("raw")
async def take(job: Job) -> None:
    pass


@pytest.fixture
async def test() -> AsyncIterator[TestApp]:
    async with in_memory(app) as test:
        yield test


async def test_a_job_is_found_by_its_handler_and_returned(test: TestApp) -> None:
    handle = await send.enqueue(42)

    assert test.assert_enqueued(send).id == handle.id


async def test_arguments_that_are_given_must_be_equal_and_others_may_be_anything(test: TestApp) -> None:
    await send.enqueue(41)
    handle = await send.enqueue(42, locale="sv")

    assert test.assert_enqueued(send, 42).id == handle.id
    assert test.assert_enqueued(send, user_id=42, locale="sv").id == handle.id
    assert test.assert_enqueued(send, ANY, locale="sv").id == handle.id
    test.assert_not_enqueued(send, 43)
    test.assert_not_enqueued(send, 41, locale="sv")


async def test_a_default_counts_like_an_argument_that_was_given(test: TestApp) -> None:
    await send.enqueue(42)

    test.assert_enqueued(send, locale="en")
    test.assert_enqueued(send.call(42, locale="en"))


async def test_arguments_are_compared_as_the_handler_gets_them(test: TestApp) -> None:
    await deliver.enqueue(Address("High Street", 5), START)

    test.assert_enqueued(deliver, Address("High Street", 5), START)
    test.assert_enqueued(deliver, at=START)
    test.assert_not_enqueued(deliver, Address("High Street", 6))


async def test_a_job_is_found_by_its_kind(test: TestApp) -> None:
    await send.enqueue(42)
    await test.client.enqueue("other", {"a": 1}, kind="of_another_program")

    test.assert_enqueued("send", 42)
    test.assert_enqueued("of_another_program", a=1)
    test.assert_not_enqueued("of_another_program", a=2)
    with pytest.raises(TypeError, match="give its arguments by name"):
        test.assert_enqueued("of_another_program", 1)


async def test_a_call_stands_for_all_of_its_arguments(test: TestApp) -> None:
    await count_them.enqueue(3, "a")
    await send.enqueue(42, locale="sv")

    test.assert_enqueued(count_them.call(count=3, queue="a"))
    test.assert_not_enqueued(count_them.call(count=3, queue="b"))
    test.assert_not_enqueued(send.call(42))
    with pytest.raises(TypeError, match="has its arguments already"):
        test.assert_enqueued(send.call(42), 42)


async def test_a_raw_job_is_found_by_its_consumer_and_payload(test: TestApp) -> None:
    await test.client.enqueue("raw", b"bytes")
    await test.client.enqueue("raw", {"json": True})

    test.assert_enqueued(take, count=2)
    test.assert_enqueued(take, b"bytes")
    test.assert_enqueued(take, {"json": True})
    test.assert_not_enqueued(take, b"others")
    with pytest.raises(TypeError, match="a payload and no arguments"):
        test.assert_enqueued(take, b"one", b"two")


async def test_the_queue_is_looked_at_when_it_is_given(test: TestApp) -> None:
    await send.options(queue="slow").enqueue(42)

    test.assert_enqueued(send, 42, queue="slow")
    test.assert_not_enqueued(send, 42, queue="email")


async def test_a_count_is_exact(test: TestApp) -> None:
    await send.enqueue(1)
    await send.enqueue(2)

    test.assert_enqueued(send, count=2)
    with pytest.raises(AssertionError, match=r"send\(\.\.\.\) was enqueued 2 times, not 1; enqueued were"):
        test.assert_enqueued(send, count=1)


async def test_jobs_that_have_run_are_found_too(test: TestApp) -> None:
    await send.enqueue(42)
    await test.drain()

    test.assert_enqueued(send, 42)


async def test_a_message_has_what_was_enqueued_instead_the_nearest_first(test: TestApp) -> None:
    await test.client.enqueue("raw", b"bytes")
    await send.enqueue(7)
    await send.enqueue(42, locale="sv")

    with pytest.raises(AssertionError) as failed:
        test.assert_enqueued(send, 42, locale="en")

    assert str(failed.value).splitlines() == [
        "send(user_id=42, locale='en', ...) was not enqueued; enqueued were, the nearest first:",
        "  send(user_id=7) in queue 'email', pending",
        "  send(user_id=42, locale='sv') in queue 'email', pending",
        "  a raw job(b'bytes') in queue 'raw', pending",
    ]


async def test_a_message_says_that_nothing_was_enqueued(test: TestApp) -> None:
    with pytest.raises(AssertionError, match=r"^send\(\.\.\.\) in queue 'x' was not enqueued; nothing was enqueued at"):
        test.assert_enqueued(send, queue="x")


async def test_a_message_about_many_is_short(test: TestApp) -> None:
    await app.enqueue_many(send.call(number) for number in range(30))

    with pytest.raises(AssertionError) as failed:
        test.assert_not_enqueued(send)

    lines = str(failed.value).splitlines()
    assert lines[0] == "send(...) was enqueued; enqueued were, the nearest first:"
    assert lines[-1] == "  and 20 more"
    assert len(lines) == 12


async def test_what_is_secret_is_not_in_a_message(test: TestApp) -> None:
    await log_in.enqueue("ada", "sesame")

    with pytest.raises(AssertionError) as failed:
        test.assert_enqueued(log_in, "ada", "open sesame")

    assert "sesame" not in str(failed.value)
    assert "password=***" in str(failed.value)


async def test_an_argument_with_a_secret_field_is_not_in_a_message(test: TestApp) -> None:
    await pay.enqueue([Card("sesame")], 1)

    with pytest.raises(AssertionError) as failed:
        test.assert_enqueued(pay, [Card("open sesame")], 1)

    assert "sesame" not in str(failed.value)
    assert "pay(cards=***, total=1)" in str(failed.value)


@pytest.mark.parametrize(
    "args,kwargs,problem",
    [
        ((1, 2), {}, r"send\(\) takes 1 arguments by position, and 2 were given"),
        ((), {"locael": "sv"}, r"send\(\) has no parameter 'locael': it takes user_id, locale"),
        ((1,), {"user_id": 1}, r"send\(\) got two values for 'user_id'"),
    ],
)
async def test_arguments_that_the_handler_does_not_have_are_refused(
    test: TestApp, args: tuple[int, ...], kwargs: dict[str, object], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        test.assert_enqueued(send, *args, queue=None, count=None, **kwargs)


async def test_a_handler_of_any_names_may_be_asked_for_any(test: TestApp) -> None:
    await anything.enqueue(a=1, b=2)

    test.assert_enqueued(anything, b=2)
    test.assert_not_enqueued(anything, c=2)


async def test_something_else_is_refused(test: TestApp) -> None:
    with pytest.raises(InvalidValue, match="a handler, a call or a kind is expected, not 5"):
        test.assert_enqueued(5)  # type: ignore[arg-type]


async def test_a_payload_that_does_not_decode_is_shown_as_it_is(test: TestApp) -> None:
    await test.client.enqueue("email", {"user_id": "x"}, kind="send")
    await test.client.enqueue("email", b"no json", kind="send")

    test.assert_enqueued(send, count=2)
    test.assert_enqueued(send, "x", count=1)
    with pytest.raises(AssertionError, match=r"send\(payload=b'no json'\) in queue 'email'"):
        test.assert_enqueued(send, 42)


async def test_the_functions_take_an_app_or_the_app_of_a_test(test: TestApp) -> None:
    await send.enqueue(42)

    assert assert_enqueued(test, send, 42).id == assert_enqueued(app, send, user_id=42).id
    assert_not_enqueued(test, send, 43)
    with pytest.raises(AssertionError, match="was enqueued"):
        assert_not_enqueued(app, send)


async def test_a_store_that_is_not_in_memory_is_refused(tmp_path: Path) -> None:
    async with App(f"sqlite:///{tmp_path}/jobs.db") as elsewhere:
        with pytest.raises(InvalidValue, match=r"use windlass\.testing\.in_memory"):
            assert_enqueued(elsewhere, "send")


def test_an_app_without_an_event_loop_can_be_looked_at() -> None:
    own = App("memory://", eager=True)

    @own.job
    def work(number: int) -> None:
        pass

    work.enqueue_sync(1)

    assert_enqueued(own, work, 1, count=1)
    own.close_sync()
