"""Values that Postgres can store, and that no driver or datetime can read: they stop nothing but their own record."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, cast
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import tuple_row

from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.stores.postgres.ways import Settle, way
from windlass import Client, NewJob
from windlass.connect import open_store
from windlass.core.duration import EPOCH
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure, Note
from windlass.core.looks import AuditEntry
from windlass.core.requests import Changed, ClaimRequest, RescueRequest, Settlement
from windlass.core.retention import Keep, Retention
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.runner import Runner
from windlass.testing.conformance.given import a_job

MINUTE = timedelta(minutes=1)
TIMES = ("infinity", "-infinity", "20000-01-01 00:00:00+00", "4713-01-01 00:00:00+00 BC")
HEADERS = (
    "",
    "5",
    "null",
    "[]",
    "{}}",
    '{"a":5}',
    '{"a":null}',
    '{"a":{"b":"c"}}',
    '{"a":"b"',
    '{"a" "b"}',
    '{"a":"b",}',
)
NOT_IN_THE_STATEMENT = ('{"a":"\\ud800"}', '{"a":"\\x"}', '{"a":"\u0001"}')
"""Headers that have the shape of headers, and do not decode."""
SOUND = ("{}", ' { "a" : "b" , "c":"\\"d\\u00e9\\\\" }\n', '{"":""}')

Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    store = open_store(schema)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def run(schema: str) -> Iterator[Run]:
    """Runs a statement on the tables of the store, as an operator would."""
    with psycopg.connect(
        dsn_of(schema), autocommit=True, options=f"-c search_path={schema_of(schema)}", row_factory=tuple_row
    ) as connection:

        def run(statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
            cursor = connection.execute(sql.SQL(statement).format(*map(sql.Literal, values)))
            return cursor.fetchall() if cursor.description else []

        yield run


async def three(store: Store, queue: str = "default") -> list[JobId]:
    return [job.id for job in await store.enqueue([a_job(queue, payload=bytes([at])) for at in range(3)])]


async def claim(store: Store, *, limit: int = 10, kinds: list[str | None] | None = None) -> list[JobId]:
    return [claim.job.id for claim in (await store.claim(ClaimRequest(["default"], limit, MINUTE, kinds))).jobs]


@pytest.mark.parametrize("column", ["created_at", "run_at"])
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("kinds", [None, [None]], ids=["heads", "of kinds"])
async def test_a_claim_gives_what_is_behind_a_job_whose_time_cannot_be_read(
    store: Store, run: Run, column: LiteralString, time: str, kinds: list[str | None] | None
) -> None:
    first, *others = await three(store)
    run("update windlass_job set " + column + " = {} where id = {}", time, first)

    assert await claim(store, limit=2, kinds=kinds) == others
    assert await claim(store, kinds=kinds) == []

    [job] = await store.get([first])
    assert job is not None
    assert job.state is State.DEAD
    assert f"DamagedRecord: {column} is out of range" in (job.last_error or "")
    assert column in (job.damage or "")
    [row] = await store.stats("default")
    assert (row.pending, row.running, row.dead, row.totals.dead) == (0, 2, 1, 1)
    assert run(
        "select " + column + "::text like '%:%' or " + column + " in ('infinity', '-infinity') from windlass_job"
    )


@pytest.mark.parametrize("headers", HEADERS)
async def test_headers_of_the_wrong_shape_are_set_aside_by_the_claim(store: Store, run: Run, headers: str) -> None:
    first, *others = await three(store)
    run("update windlass_job set headers = {} where id = {}", headers, first)

    assert await claim(store) == others

    assert run("select state, attempt, delivery, headers from windlass_job where id = {}", first) == [
        ("dead", 0, 0, headers)
    ]


@pytest.mark.parametrize("headers", NOT_IN_THE_STATEMENT)
async def test_what_the_statement_does_not_see_is_dead_as_soon_as_it_was_claimed(
    store: Store, run: Run, headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, *others = await three(store)
    run("update windlass_job set headers = {} where id = {}", headers, first)

    with caplog.at_level(logging.ERROR):
        assert await claim(store) == others

    [job] = await store.get([first])
    assert job is not None
    assert (job.state, job.lease_expires_at) == (State.DEAD, None)
    assert "headers" in (job.damage or "")
    assert "DamagedRecord: headers" in (job.last_error or "")
    assert [(delivery.attempt, delivery.outcome) for delivery in job.history] == [(1, "failed")]
    assert first in caplog.text


async def test_a_claim_of_nothing_but_such_jobs_goes_on_to_the_next(store: Store, run: Run) -> None:
    *damaged, last = await three(store)
    run("update windlass_job set headers = {} where id <> {}", NOT_IN_THE_STATEMENT[0], last)

    assert await claim(store, limit=1) == [last]

    assert [job.state for job in await store.get(damaged) if job is not None] == [State.DEAD] * 2


@pytest.mark.parametrize("headers", SOUND)
async def test_headers_that_another_program_has_written_its_own_way_are_sound(
    store: Store, run: Run, headers: str
) -> None:
    jobs = await three(store)
    run("update windlass_job set headers = {}", headers)

    assert await claim(store) == jobs


async def test_many_damaged_jobs_at_the_head_do_not_use_up_a_claim(store: Store, run: Run) -> None:
    await store.enqueue([a_job() for _ in range(30)])
    run("update windlass_job set codec = ''")
    [last] = await store.enqueue([a_job()])

    assert await claim(store, limit=1) == [last.id]


async def test_a_claim_of_one_job_passes_hundreds_of_damaged_ones(store: Store, run: Run) -> None:
    await store.enqueue([a_job() for _ in range(500)])
    run("update windlass_job set headers = '['")
    [sound] = await store.enqueue([a_job()])

    assert await claim(store, limit=1) == [sound.id]
    [row] = await store.stats("default")
    assert (row.pending, row.running, row.dead) == (0, 1, 500)


async def test_a_claim_does_not_wait_for_who_repairs_a_damaged_job(store: Store, run: Run, schema: str) -> None:
    first, repaired, sound = await three(store)
    run("update windlass_job set headers = '[' where id in ({}, {})", first, repaired)
    with psycopg.connect(dsn_of(schema), options=f"-c search_path={schema_of(schema)}") as operator:
        operator.execute("update windlass_job set headers = null where id = %s", [repaired])

        assert await asyncio.wait_for(claim(store), 10) == [sound]

        operator.commit()
    assert await claim(store) == [repaired]


async def test_a_claim_leaves_the_damaged_jobs_of_a_paused_queue_alone(store: Store, run: Run) -> None:
    await store.enqueue([a_job("paused"), a_job("default")])
    run("update windlass_job set headers = '['")
    await store.set_paused("paused", paused=True)

    assert (await store.claim(ClaimRequest(["paused", "default"], 1, MINUTE))).jobs == []
    assert [(row.queue, row.pending, row.dead) for row in await store.stats()] == [("default", 0, 1), ("paused", 1, 0)]


async def test_a_repaired_job_runs_after_a_retry_and_a_damaged_one_is_set_aside_again(store: Store, run: Run) -> None:
    [job] = await store.enqueue([a_job(unique=Unique("key", until="claimed"))])
    run("update windlass_job set headers = '5'")
    assert await claim(store) == []
    [other] = await store.enqueue([a_job(unique=Unique("key", until="claimed"))])
    assert other.created
    assert await claim(store) == [other.id]

    assert await store.retry([job.id]) == [Changed.DONE]
    assert await claim(store) == []
    run("update windlass_job set headers = null")
    assert await store.retry([job.id]) == [Changed.DONE]

    assert await claim(store) == [job.id]


@pytest.mark.parametrize("time", TIMES)
async def test_a_damaged_time_of_a_running_job_stops_no_release_and_no_rescue(
    store: Store, run: Run, time: str
) -> None:
    jobs = await three(store)
    claims = (await store.claim(ClaimRequest(["default"], 3, timedelta(0)))).jobs
    run("update windlass_job set claimed_at = {}, run_at = {} where id = {}", time, time, jobs[0])
    released = Settlement(jobs[0], claims[0].token, ToReleased(started=False))
    assert await store.settle(
        [released, *(Settlement(c.job.id, c.token, ToReleased(started=False)) for c in claims[1:2])]
    )

    rescued = await store.rescue(RescueRequest(), Retention())

    assert [one.id for one in rescued] == [jobs[2]]
    assert set(await claim(store)) == set(jobs[1:])


@pytest.mark.parametrize("lease", [None, "infinity", "20000-01-01 00:00:00+00", "-infinity"])
async def test_a_lease_that_cannot_be_read_is_taken_back(store: Store, run: Run, lease: str | None) -> None:
    jobs = await three(store)
    await store.claim(ClaimRequest(["default"], 3, MINUTE))
    run("update windlass_job set lease_expires_at = {} where id = {}", lease, jobs[1])

    rescued = await store.rescue(RescueRequest(), Retention())

    assert [one.id for one in rescued] == [jobs[1]]
    assert await claim(store) == [jobs[1]]


@pytest.mark.parametrize("time", TIMES)
async def test_a_scheduled_job_with_a_damaged_time_keeps_no_other_from_its_time(
    store: Store, run: Run, time: str
) -> None:
    jobs = await store.enqueue([a_job(delay=timedelta(hours=1)) for _ in range(2)])
    run("update windlass_job set run_at = {} where id = {}", time, jobs[0].id)

    wait = await store.due_in(["default"])
    run("update windlass_job set run_at = now() where id = {}", jobs[1].id)

    assert wait is not None
    assert await claim(store) == [jobs[1].id]


async def test_a_finished_job_with_a_damaged_time_keeps_no_other_from_being_pruned(store: Store, run: Run) -> None:
    jobs = await store.enqueue([a_job() for _ in range(6)])
    claims = (await store.claim(ClaimRequest(["default"], 6, MINUTE))).jobs
    await store.settle([Settlement(c.job.id, c.token, ToDead(Failure("no"))) for c in claims])
    for job, time in zip(jobs, TIMES, strict=False):
        run("update windlass_job set finished_at = {} where id = {}", time, job.id)
    run(
        "update windlass_job set finished_at = now() - interval '2 days' where id = any({})",
        [job.id for job in jobs[4:]],
    )

    retention = Retention(Keep(dead=timedelta(days=1)), most=3)
    while await store.prune(retention, limit=1):
        pass

    left = await store.jobs(JobFilter(), after=None, limit=10)
    assert {job.id for job in left} == {jobs[0].id, jobs[2].id}
    assert all("finished_at" in (job.damage or "") for job in left)


async def test_a_retry_writes_no_damaged_time_into_the_history(store: Store, run: Run) -> None:
    [job] = await store.enqueue([a_job()])
    await store.cancel([job.id], Retention())
    run("update windlass_job set finished_at = 'infinity'")

    assert await store.retry([job.id]) == [Changed.DONE]

    [found] = await store.get([job.id])
    assert found is not None
    assert (len(found.history), found.damage) == (1, None)


async def test_a_job_before_every_mark_is_found_when_the_marks_are_looked_over(store: Store, run: Run) -> None:
    jobs = await three(store)
    run("update windlass_job set run_at = '-infinity' where id = {}", jobs[1])
    run(
        "insert into windlass_queue (queue, priorities, marks)"
        " select queue, array[priority], array['2020-01-01'::timestamptz] from windlass_job limit 1"
    )
    assert jobs[1] not in await claim(store)

    runner: Runner = cast("Any", store)._room.runner
    assert await runner.run(lambda _: marks.check("default"))

    assert await claim(store) == []
    [job] = await store.get([jobs[1]])
    assert job is not None
    assert job.state is State.DEAD


async def test_a_priority_below_all_is_claimed_first(store: Store, run: Run) -> None:
    jobs = await three(store)
    run("update windlass_job set priority = -5 where id = {}", jobs[2])

    assert await claim(store, limit=1) == [jobs[2]]
    assert await claim(store, limit=1, kinds=[None]) == [jobs[0]]


async def test_a_number_of_lines_that_cannot_be_counted_up_loses_no_note_of_others(store: Store, run: Run) -> None:
    jobs = await three(store)
    claims = (await store.claim(ClaimRequest(["default"], 3, MINUTE))).jobs
    run("update windlass_job set log_lines = 2147483647 where id = {}", jobs[0])
    run("update windlass_job set log_lines = -2147483648 where id = {}", jobs[1])

    for text in ("one", "two"):
        assert await store.note([Note(c.job.id, c.token, None, [("info", text)]) for c in claims]) == [True] * 3

    found = await store.get(jobs)
    assert [[line.text for line in job.log] for job in found if job is not None] == [["one", "two"]] * 3


async def test_damaged_lines_and_deliveries_hide_no_others(store: Store, run: Run) -> None:
    [job] = await store.enqueue([a_job()])
    for _ in range(3):
        [claim] = (await store.claim(ClaimRequest(["default"], 1, MINUTE))).jobs
        await store.note([Note(claim.job.id, claim.token, None, [("info", "begun")])])
        await store.settle([Settlement(claim.job.id, claim.token, ToReleased(started=True))])
    run("update windlass_delivery set ended_at = 'infinity' where delivery = 2")
    run("update windlass_log set at = '20000-01-01' where line = 1")

    [found] = await store.get([job.id])

    assert found is not None
    assert [delivery.delivery for delivery in found.history] == [1, 3]
    assert len(found.log) == 2
    assert found.damage == "history has 1 deliveries that cannot be read; log has 1 lines that cannot be read"


async def test_damaged_servers_and_entries_are_left_out_of_their_lists(
    store: Store, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await store.write_audit([AuditEntry(at, "me", "retry", f"job {n}", {"n": "1"}) for n in range(3)])
    run("update windlass_audit set detail = '[]' where target = 'job 0'")
    run("update windlass_audit set at = 'infinity' where target = 'job 1'")
    run("insert into windlass_server values ('a', now(), now(), '5'), ('b', 'infinity', now(), {})", "{}")

    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert [entry.target for entry in await store.audit(limit=10)] == ["job 2"]
            assert await store.servers() == []

    assert len(caplog.records) == 4


@pytest.mark.parametrize(
    "field, value", [("headers", "[]"), ("overlap", "never"), ("last_run_at", "infinity"), ("rule", "")]
)
async def test_a_damaged_schedule_is_shown_and_hides_no_other(
    store: Store, run: Run, field: LiteralString, value: str
) -> None:
    for schedule_id in ("first", "second"):
        schedule = Schedule(
            id=schedule_id,
            rule="every 60s",
            queue="default",
            codec="raw",
            priority=1,
            max_attempts=1,
            next_run_at=EPOCH,
        )
        assert await store.write_schedule(schedule, expected=None)
    run("update windlass_schedule set " + field + " = {} where id = 'first'", value)

    listed = await store.schedules()
    due = await store.due_schedules((), limit=10)

    for found in (listed.schedules, due.due):
        assert [one.id for one in found] == ["first", "second"]
        assert field in (found[0].damage or "")
        assert found[1].damage is None


@pytest.mark.parametrize("time", TIMES[1:3])
@pytest.mark.parametrize("kind", ["psycopg", "psycopg2", "asyncpg", "async core asyncpg", "django"])
async def test_a_claim_with_damaged_times_is_settled_in_a_callers_transaction(
    client: Client, schema: str, run: Run, kind: str, time: str
) -> None:
    run("create table mine (name text primary key)")
    await client.enqueue_many([NewJob("email", b"nack", unique=Unique("key"))])
    [claim] = await client.claim_many("email", limit=1, lease=3600)
    run("update windlass_job set claimed_at = {}, run_at = {}", time, time)
    run("update windlass_hold set expires_at = 'infinity'")

    async with way(kind, client, schema, Settle({"nack": claim}, str)) as transact:
        await transact("nack", True)  # noqa: FBT003 - how it ends

    job = await client.get(claim.job.id)
    assert job is not None
    assert job.state is State.SCHEDULED


async def test_a_database_that_checks_no_text_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    name = f"test_{secrets.token_hex(6)}"
    cluster().run(
        sql.SQL("create database {} template template0 encoding 'SQL_ASCII' locale 'C'").format(sql.Identifier(name))
    )
    address = urlsplit(cluster().url)
    try:
        store = open_store(address._replace(path=f"/{name}").geturl())
        with caplog.at_level(logging.WARNING):
            await store.open()
        await store.close()
    finally:
        cluster().run(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    assert "SQL_ASCII" in caplog.text
