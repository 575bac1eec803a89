"""What is marked with `Secret` is told with every job that a handler makes, however it is made."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

import pytest

from windlass import App, Context, InvalidValue, Job, JobFilter, Secret
from windlass.handlers.secret_paths import HEADER
from windlass.testing import in_memory

PATHS = {HEADER: "pin,cards[].number"}


@dataclass
class Card:
    number: Annotated[str, Secret]


seen: list[tuple[str, list[Card]]] = []


def an_app() -> App:
    app = App("memory://")

    @app.job
    async def pay(pin: Annotated[str, Secret], cards: list[Card]) -> None:
        seen.append((pin, cards))

    @app.job
    async def plain(number: int) -> None:
        pass

    @app.job
    async def first(ctx: Context) -> None:
        ctx.then(app.handler("pay").call("canary", []))

    return app


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with an_app() as app:
        yield app


async def the_job(app: App) -> Job:
    [job] = await app.client.jobs()
    return job


async def test_a_job_carries_the_paths_of_its_secret_fields(app: App) -> None:
    await app.handler("pay").enqueue("canary", [Card("canary")])

    assert (await the_job(app)).headers == PATHS


async def test_headers_of_the_caller_are_kept_beside_them(app: App) -> None:
    mine = {"trace": "1"}
    await app.handler("pay").options(headers=mine).enqueue("canary", [])

    assert (await the_job(app)).headers == {"trace": "1", **PATHS}
    assert mine == {"trace": "1"}


async def test_a_handler_without_secrets_adds_nothing(app: App) -> None:
    await app.handler("plain").enqueue(1)

    assert (await the_job(app)).headers == {}


@pytest.mark.parametrize("kind", ["pay", "plain"])
async def test_nobody_else_writes_the_header_of_a_handler(app: App, kind: str) -> None:
    with pytest.raises(InvalidValue, match="'windlass-secret' is written by handlers"):
        app.handler(kind).options(headers={HEADER: "nothing"})


async def test_headers_that_are_none_are_refused_as_ever(app: App) -> None:
    wrong = app.handler("pay").options(headers=[("a", "b")])  # type: ignore[arg-type]

    with pytest.raises(InvalidValue, match="headers are a mapping"):
        await wrong.enqueue("canary", [])


async def test_jobs_of_a_schedule_with_such_a_call_carry_them(app: App) -> None:
    await app.client.schedules.put("put", "* * * * *", app.handler("pay").call("canary", []))

    await app.client.schedules.run_now("put")

    assert (await the_job(app)).headers == PATHS


async def test_what_comes_then_carries_them_and_the_handler_gets_the_real_value() -> None:
    seen.clear()
    app = an_app()
    async with in_memory(app) as test:
        await app.handler("first").enqueue()
        await app.handler("pay").enqueue("canary", [Card("another")])
        await test.drain()
        made = await app.client.jobs(JobFilter(kind="pay"))

    assert [job.headers for job in made] == [PATHS, PATHS]
    assert sorted(seen, key=str) == [("canary", [Card("another")]), ("canary", [])]
