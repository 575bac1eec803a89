"""A store that commit 04839a3 has written opens after `windlass migrate`, has lost nothing, and goes on."""

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import windlass
from tests.stores.postgres.migrating import connected, options_of
from tests.stores.postgres.next_migrations import up_to
from tests.upgrade import old_store
from tests.upgrade.store_files import FILES, read_path, restored
from windlass import Client, JobId, SchemaTooNew, SchemaTooOld, State, Token, Unique, UniqueConflict
from windlass.core.requests import Settled, Settlement
from windlass.core.verdict import ToSucceeded
from windlass.stores.postgres.migrate import prepare
from windlass.stores.sqlite import database
from windlass.testing import FakeClock

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | None"

BEGAN = FakeClock().now()
SCHEMAS = {"sqlite": 4, "postgres": 3}
"""The versions that the schemas had then."""


@pytest.fixture(params=FILES)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def url(store: str) -> Iterator[str]:
    with restored(store) as url:
        yield url


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Client]:
    """Open a store a moment after it was written."""
    async with windlass.connect(url, clock=FakeClock(BEGAN + timedelta(minutes=2)), keep_succeeded=None) as client:
        yield client


def migrate(url: str) -> None:
    subprocess.run([sys.executable, "-m", "windlass", "migrate", "--url", url], check=True, capture_output=True)


def read(store: str) -> dict[str, Any]:
    """Return what could be read of a store when it was written, and the tokens of its claims."""
    found: dict[str, Any] = json.loads(gzip.decompress(read_path(store).read_bytes()))
    return found


def known(now: Json, then: Json) -> Json:
    """Return `now` without the fields that records did not have then."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: known(value, then[name]) for name, value in now.items() if name in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [known(one, other) for one, other in zip(now, then, strict=True)]
    return now


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
async def test_a_store_with_a_schema_is_refused_until_it_is_brought_up(url: str) -> None:
    with pytest.raises(SchemaTooOld, match="windlass migrate"):
        async with opened(url):
            pass


@pytest.mark.parametrize("store", ["redis", "slatedb+file"], indirect=True)
async def test_a_store_whose_keys_are_as_before_opens_as_it_is(store: str, url: str) -> None:
    async with opened(url) as client:
        found = await old_store.contents(client.store, BEGAN)

    then = read(store)["contents"]
    assert known(found, then) == then


async def test_nothing_is_lost(store: str, url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        found = await old_store.contents(client.store, BEGAN)

    then = read(store)["contents"]
    assert known(found, then) == then
    assert [set(found[part]) for part in ("jobs", "queues", "schedules")] == [
        set(then[part]) for part in ("jobs", "queues", "schedules")
    ]


async def test_running_jobs_are_settled_with_their_tokens(store: str, url: str) -> None:
    migrate(url)
    tokens = read(store)["tokens"]
    ids = [old_store.RUNNING, old_store.STOPPING, old_store.KEY_OF_CLAIMED, old_store.SUCCEEDED]
    settlements = [Settlement(JobId(each), Token(tokens[each]), ToSucceeded()) for each in ids]

    async with opened(url) as client:
        results = await client.store.settle(settlements)
        jobs = await client.store.get([JobId(each) for each in ids])

    assert results == [Settled.DONE] * 3 + [Settled.REPEATED]
    assert [job and job.state for job in jobs] == [State.SUCCEEDED] * 4


async def test_a_queue_stays_paused_until_it_is_resumed(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        while_paused = await client.claim("reports")
        await client.resume("reports")
        claim = await client.claim("reports")

    assert while_paused is None
    assert claim is not None
    assert (claim.job.id, claim.job.payload) == (old_store.PAUSED, b"r")


async def test_waiting_jobs_are_claimed_in_their_order(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        claims = await client.claim_many("email", limit=10)
        for claim in claims:
            await client.ack(claim)
        stats = await client.stats("email")

    assert [claim.job.id for claim in claims] == [old_store.PENDING, old_store.KEY_OF_KIND]
    assert (stats.pending, stats.running, stats.scheduled, stats.succeeded) == (0, 3, 4, 4)


async def test_unique_keys_are_held_as_before(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        of_end = Unique("by-end", until="finished")
        held = [
            await client.enqueue("email", b"other", unique=Unique("by-time", until=60)),
            await client.enqueue("email", b"other", kind="send", unique=of_end, tenant="acme"),
            await client.enqueue("default", b"other", kind="send", unique=Unique("by-kind", scope="kind")),
        ]
        free = await client.enqueue("email", b"other", unique="by-claim")
        with pytest.raises(UniqueConflict):
            await client.enqueue(
                "email", b"o", tenant="acme", unique=Unique("by-tenant", scope="global", on_conflict="raise")
            )

    ids = [old_store.KEY_OF_ENDED, old_store.RUNNING, old_store.KEY_OF_KIND]
    assert [(each.created, each.id) for each in held] == [(False, each) for each in ids]
    assert free.created


async def test_a_repeated_request_is_answered_as_the_first_time(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        [done] = await client.store.enqueue([old_store.requested_job()], request_id=old_store.REQUEST)
        [again] = await client.store.enqueue([old_store.requested_job()])

    assert (done.id, done.created, again.created) == (old_store.REQUESTED, True, False)


async def test_a_lock_is_held_as_before(url: str) -> None:
    migrate(url)
    minute = timedelta(minutes=1)

    async with opened(url) as client:
        taken = [await client.store.lock("nightly", holder, minute) for holder in ("other", "holder")]

    assert taken == [False, True]


async def test_dead_jobs_are_retried_and_schedules_are_run(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        assert await client.retry(old_store.DEAD) == 1
        made = await client.schedules.run_now("nightly")
        retried, job = await client.get(old_store.DEAD), await client.get(made.id)

    assert retried is not None
    assert job is not None
    assert (retried.state, len(retried.history)) == (State.PENDING, 1)
    assert (job.queue, job.kind, job.schedule_id) == ("reports", "build", "nightly")


async def test_all_that_doctor_looks_at_is_well(url: str) -> None:
    migrate(url)

    async with opened(url) as client:
        findings = await client.store.check()

    assert [finding for finding in findings if finding.level == "error"] == []


async def test_a_sqlite_file_that_was_brought_up_is_refused_by_the_earlier_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "SCHEMA", SCHEMAS["sqlite"])
    with restored("sqlite") as url:
        migrate(url)
        before = hashlib.sha256(Path(url.removeprefix("sqlite://")).read_bytes()).digest()

        with pytest.raises(SchemaTooNew, match="upgrade windlass; nothing was changed"):
            async with opened(url):
                pass

        assert hashlib.sha256(Path(url.removeprefix("sqlite://")).read_bytes()).digest() == before


async def test_a_postgres_schema_that_was_brought_up_is_refused_by_the_earlier_release() -> None:
    with restored("postgres") as url:
        migrate(url)
        options = options_of(url)

        async with connected(options) as connection:
            with pytest.raises(SchemaTooNew, match="upgrade windlass; nothing was changed"):
                await prepare(connection, options, migrations=up_to(SCHEMAS["postgres"]))
