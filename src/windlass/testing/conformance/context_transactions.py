"""A handler's own writes commit with the end of its attempt, once, or not at all."""

import asyncio
from inspect import isawaitable
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.errors import ClaimLost
from windlass.core.job import Job, NewJob
from windlass.core.retry import Fixed
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.served import ended, serving, until


class Oops(Exception):
    """What the handlers of these tests fail by."""


async def _without_effects(store: Store) -> None:
    async with store.transaction() as connection:
        gone = connection.execute("drop table if exists effects")
        if isawaitable(gone):
            await gone


async def _effects(connection: Any) -> int:  # noqa: ANN401 - the connection of whichever driver
    made = connection.execute("create table if not exists effects (number integer)")
    if not isawaitable(made):
        return _effects_in_a_thread(connection)
    await made
    await connection.execute("insert into effects values (1)")
    count: int = await connection.fetchval("select count(*) from effects")
    return count


def _effects_in_a_thread(connection: Any) -> int:  # noqa: ANN401 - the connection of whichever driver
    connection.execute("create table if not exists effects (number integer)")
    connection.execute("insert into effects values (1)")
    if hasattr(connection, "fetchval"):
        count: int = connection.fetchval("select count(*) from effects")
    else:
        count = connection.execute("select count(*) from effects").fetchone()[0]
    return count


async def test_effects_in_the_transaction_of_the_claim_happen_once(
    transactional: Store, open_app: OpenApp, client: Client
) -> None:
    await _without_effects(transactional)
    app = open_app(retry=Fixed(0))
    counts: list[int] = []
    hooked: list[State] = []

    @app.on_state_change
    def tell(_job: Job, _old: State, new: State) -> None:
        if new is not State.RUNNING:
            hooked.append(new)

    @app.job
    async def here(ctx: Context) -> str:
        async with ctx.transaction() as connection:
            counts.append(await _effects(connection))
            ctx.then(NewJob("next", b""))
        raise Oops("changes nothing any more")

    @app.job
    def thread(ctx: Context) -> str:
        with ctx.transaction() as connection:
            counts.append(_effects_in_a_thread(connection))
        return "nobody sees this"

    async with serving(app, queues=["default"]):
        jobs = [await ended(await work.enqueue()) for work in (here, thread)]
        await until(lambda: len(hooked) == 2)

    assert counts == [1, 2]
    assert [(job.state, job.attempt, job.result, job.last_error) for job in jobs] == [
        (State.SUCCEEDED, 1, None, None)
    ] * 2
    assert hooked == [State.SUCCEEDED] * 2
    assert (await client.stats("next")).pending == 1


async def test_an_error_inside_of_the_transaction_takes_its_effects_back_and_fails_the_attempt(
    transactional: Store, open_app: OpenApp, client: Client
) -> None:
    await _without_effects(transactional)
    app = open_app(retry=Fixed(0))
    counts: dict[int, list[int]] = {1: [], 2: []}

    async def fall_first(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            counts[ctx.attempt].append(await _effects(connection))
            if ctx.attempt < 2:
                raise Oops("inside")

    def fall_first_in_a_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            counts[ctx.attempt].append(_effects_in_a_thread(connection))
            if ctx.attempt < 2:
                raise Oops("inside")

    handles = [await app.job(each).enqueue() for each in (fall_first, fall_first_in_a_thread)]
    async with serving(app, concurrency=1):
        jobs = [await ended(handle) for handle in handles]

    assert [(job.state, job.attempt) for job in jobs] == [(State.SUCCEEDED, 2)] * 2
    assert (len(counts[1]), counts[2]) == (2, [1, 2])
    assert (await client.stats("default")).succeeded == 2


@pytest.mark.usefixtures("transactional")
async def test_an_attempt_that_lost_its_job_begins_no_transaction(app: App, client: Client) -> None:
    refused: list[type[Exception]] = []

    @app.job
    async def work(ctx: Context) -> str:
        if ctx.delivery == 1:
            await client.rescue(force=True)
            try:
                async with ctx.transaction() as connection:
                    await _effects(connection)
            except ClaimLost as error:
                refused.append(type(error))
                raise
        return "from the winner"

    async with serving(app):
        assert await soon((await work.enqueue()).result()) == "from the winner"
        await until(lambda: refused == [ClaimLost])


@pytest.mark.usefixtures("transactional")
async def test_a_transaction_that_is_open_for_long_is_warned_about(
    app: App, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        async with ctx.transaction():
            inside.set()
            await go.wait()

    async with serving(app, services=False):
        handle = await work.enqueue()
        await soon(inside.wait())
        clock.advance(9)
        assert "is open since" not in caplog.text
        clock.advance(1.5)
        assert "is open since" in caplog.text
        go.set()
        await ended(handle)
