"""A network that says nothing any more while the schema is brought up: nobody waits for ever."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

import windlass
from tests.postgres.cluster import schema_of
from tests.postgres.proxy import Proxy
from tests.stores.postgres.migrating import bring_up, meta, options_of, relations
from tests.stores.postgres.racing import connection_to
from windlass import StoreUnavailable
from windlass.stores.postgres.migrate import OURS, SCHEMA, Migrations
from windlass.stores.postgres.migrator import PostgresMigrator
from windlass.stores.postgres.script import OUTSIDE
from windlass.stores.postgres.statements import migration, new_migration

DEADLINE: Final = 1.0
SPARE: Final = 5.0
"""Seconds for a machine that has much else to do."""
ASLEEP: Final = "select count(*) from pg_stat_activity where query like $1 and state = 'active'"


def one_that_sleeps(url: str, seconds: float, *, outside: bool = False) -> Migrations:
    """Return the migrations of a release whose last one takes its time."""
    text = f"select pg_sleep({seconds}), '{schema_of(url)}';\ncreate table windlass_next (n integer);\n"
    if outside:
        text = f"{OUTSIDE}\n\n{text}"
    return Migrations(
        SCHEMA + 1,
        text=lambda number: text if number > SCHEMA else migration(number),
        anew=lambda number: text if number > SCHEMA else new_migration(number),
    )


@pytest.fixture
async def url(schema: str) -> str:
    """A store that may be migrated."""
    await bring_up(schema, OURS)
    return schema


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy
        proxy.release()


@pytest.mark.parametrize("outside", [False, True], ids=["in a transaction", "outside of one"])
async def test_a_migration_may_take_longer_than_any_other_call(url: str, proxy: Proxy, outside: bool) -> None:  # noqa: FBT001
    await bring_up(f"{proxy.url}&timeout={DEADLINE / 4}", one_that_sleeps(url, DEADLINE, outside=outside))

    assert meta(url)["schema"] == str(SCHEMA + 1)


@pytest.mark.parametrize("outside", [False, True], ids=["in a transaction", "outside of one"])
async def test_a_migration_whose_network_is_gone_ends(url: str, proxy: Proxy, outside: bool) -> None:  # noqa: FBT001
    going = await asleep(url, proxy, one_that_sleeps(url, 60, outside=outside))

    proxy.hold()

    assert await seconds_until_it_fails(going) < 3 * DEADLINE + SPARE


async def test_a_migration_whose_answer_got_lost_ends_although_the_server_can_be_reached(
    url: str, proxy: Proxy
) -> None:
    going = await asleep(url, proxy, one_that_sleeps(url, DEADLINE / 2))

    # that connection alone: a second one tells that the server is through
    for client in proxy.clients:
        client.hold()

    assert await seconds_until_it_fails(going) < 4 * DEADLINE + SPARE
    assert "windlass_next" not in relations(url)


@pytest.mark.parametrize("place", range(1, 8))
async def test_no_short_statement_of_a_migration_waits_for_ever(url: str, proxy: Proxy, place: int) -> None:
    seen = 0

    def hold(_: object) -> bool:
        nonlocal seen
        seen += 1
        if seen == place:
            proxy.hold()
        return False

    proxy.drop_reply(hold)
    began = time.monotonic()
    with pytest.raises((StoreUnavailable, TimeoutError)):
        await bring_up(f"{proxy.url}&timeout={DEADLINE}", one_that_sleeps(url, 0))

    assert time.monotonic() - began < 3 * DEADLINE + SPARE


async def test_a_store_that_is_made_through_a_network_that_is_gone_ends_by_its_deadline(url: str) -> None:
    async with Proxy(url) as proxy:
        proxy.hold(["answers"])
        began = time.monotonic()
        with pytest.raises(StoreUnavailable) as raised:
            await windlass.connect(f"{proxy.url}&timeout={DEADLINE}").open()
        took = time.monotonic() - began
        with pytest.raises(StoreUnavailable):
            await PostgresMigrator(options_of(f"{proxy.url}&timeout={DEADLINE}")).look()

    assert raised.value.retryable
    assert took < DEADLINE + SPARE


async def asleep(url: str, proxy: Proxy, migrations: Migrations) -> "asyncio.Task[None]":
    """Begin to migrate, and return when the long statement is under way."""
    going = asyncio.create_task(bring_up(f"{proxy.url}&timeout={DEADLINE}", migrations))
    async with connection_to(url) as outside, asyncio.timeout(4 * SPARE):
        while not await outside.fetchval(ASLEEP, f"%select pg_sleep%{schema_of(url)}%"):  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.01)
    return going


async def seconds_until_it_fails(going: "asyncio.Task[None]") -> float:
    began = time.monotonic()
    with pytest.raises((StoreUnavailable, TimeoutError)):
        await asyncio.wait_for(asyncio.shield(going), 30)
    assert going.done(), "it waits for ever"
    return time.monotonic() - began
