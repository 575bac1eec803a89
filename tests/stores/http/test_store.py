"""The store over HTTP: what it puts together, takes apart, hides and comes back from."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

import windlass
from tests.http.in_process import TOKEN, InProcess
from tests.stores.http.served import Bench, benched
from tests.stores.redis.calls import LOOKS, MINUTE, WRITES, settlement, wanting
from windlass.connect import open_store
from windlass.core.commands import CancelJobs, FreeLock
from windlass.core.errors import (
    ClientClosed,
    InvalidURL,
    InvalidValue,
    NotTransactional,
    PayloadTooLarge,
    StoreUnavailable,
    UniqueConflict,
)
from windlass.core.filters import JobFilter
from windlass.core.job import Note, PreparedJob, Token
from windlass.core.looks import AuditEntry
from windlass.core.requests import CancelOutcome, Changed, KvWrite, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.core.unique import Unique
from windlass.system import SystemClock, SystemRng
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import a_job, a_schedule

NAME = "name"
ANOTHER = "wl_" + "x" * 43


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched() as bench:
        yield bench


@pytest.fixture
def three_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call take three of whatever it is about."""
    for module in (
        "api.carried_call",
        "api.schedules",
        *(f"stores.http.{each}" for each in ("batches", "commands", "queries")),
    ):
        monkeypatch.setattr(f"windlass.{module}.MOST_JOBS", 3)


async def test_what_it_can_do_is_known_before_it_is_opened(bench: Bench) -> None:
    features = bench.serving.door().features

    # the other one has twice the time for its calls
    assert features == replace(bench.direct.features, locked_for=bench.direct.features.locked_for / 2)
    assert (features.transactional, features.served, features.replies_can_be_lost) == (False, True, True)
    assert features.atomic_across_queues


async def test_calls_of_one_moment_go_out_together_and_one_that_is_refused_does_not_harm_the_others(
    bench: Bench,
) -> None:
    key = Unique("k", on_conflict="raise")
    await bench.direct.enqueue([a_job(NAME, unique=key)])
    batches = [[a_job(NAME), a_job(NAME)], [a_job(NAME), a_job(NAME, unique=key)], [a_job(NAME)]]
    before = bench.proxy.requests

    first, refused, last = await asyncio.gather(
        *(bench.through.enqueue(batch) for batch in batches), return_exceptions=True
    )

    assert bench.proxy.requests - before == 1
    assert isinstance(refused, UniqueConflict)
    assert refused.key == "k"
    assert [first, last] == [[(job.id, True) for job in batch] for batch in (batches[0], batches[2])]
    [stats] = await bench.direct.stats(NAME)
    assert stats.pending == 4


async def test_one_call_is_sent_at_once_and_many_in_few_requests(bench: Bench) -> None:
    before = bench.proxy.requests
    await asyncio.gather(*(bench.through.enqueue([a_job(NAME)]) for _ in range(500)))
    asked = bench.proxy.requests - before

    claims = (await bench.through.claim(wanting(NAME, limit=500))).jobs
    before = bench.proxy.requests
    settled = await asyncio.gather(*(bench.through.settle([settlement(claim)]) for claim in claims))

    assert settled == [[Settled.DONE]] * 500
    assert asked <= 4
    assert bench.proxy.requests - before <= 4


async def test_large_payloads_do_not_go_out_together(bench: Bench) -> None:
    """What nobody can split would else be too large for the serving side."""
    jobs = [a_job(NAME, payload=b"x" * 1_000_000) for _ in range(30)]

    done = await asyncio.gather(*(bench.direct.enqueue([job]) for job in jobs))

    assert [each.created for [each] in done] == [True] * 30


async def test_a_batch_that_is_too_large_for_one_call_is_refused_whole(bench: Bench) -> None:
    with pytest.raises(StoreUnavailable, match="16"):
        await bench.direct.enqueue([a_job(NAME, payload=b"x" * 1_000_000) for _ in range(20)])

    assert await bench.direct.stats(NAME) == []


@pytest.mark.slow
async def test_jobs_whose_payloads_are_too_large_for_one_reply_come_in_several(bench: Bench) -> None:
    """No reply has more than 64 MiB."""
    ids = [job.id for job in [a_job(NAME, payload=bytes(1 << 20)) for _ in range(56)] if await put(bench, job)]

    assert [job.id for job in await bench.direct.jobs(JobFilter(), after=None, limit=100)] == ids
    assert [job and job.id for job in await bench.direct.get(ids)] == ids


async def put(bench: Bench, job: PreparedJob) -> bool:
    """Put a job in line where it is served."""
    [done] = await bench.serving.store.enqueue([job])
    return done.created


async def test_a_payload_over_the_limit_of_the_serving_side_is_refused_as_it_would_be_here(bench: Bench) -> None:
    with pytest.raises(PayloadTooLarge) as told:
        await bench.direct.enqueue([a_job(NAME, payload=b"x" * 1_100_000)])

    assert (told.value.size, told.value.limit) == (1_100_000, 1024 * 1024)


@pytest.mark.usefixtures("three_at_a_time")
async def test_long_lists_are_asked_for_in_parts_and_each_of_them_has_its_answer(bench: Bench) -> None:
    store = bench.through
    jobs = [a_job(NAME) for _ in range(8)]
    ids = [job.id for job in jobs]
    await store.enqueue(jobs)
    claims = [claim for _ in range(3) for claim in (await store.claim(wanting(NAME, limit=8))).jobs]
    held = [(claim.job.id, claim.token) for claim in claims]

    assert [job_id for job_id, _ in held] == ids
    assert [job and job.id for job in await store.get(ids)] == ids
    assert list(await store.glance(ids)) == ids
    assert [job.id for job in await store.jobs(JobFilter(), after=None, limit=1_000_000)] == ids
    assert [job.id for job in await store.jobs(JobFilter(), after=None, limit=7)] == ids[:7]
    assert [one is None for one in await store.renew([*held, (ids[0], Token("stale"))], MINUTE)] == [False] * 8 + [True]
    assert await store.note([Note(*one, lines=[("info", "x")]) for one in held]) == [True] * 8
    assert await store.cancel(ids, KEEP_ALL) == [CancelOutcome.REQUESTED] * 8
    assert len(await store.rescue(RescueRequest(force=True, to="dead", limit=7), KEEP_ALL)) == 7
    assert await store.settle([settlement(claim) for claim in claims]) == [Settled.LOST] * 7 + [Settled.DONE]
    assert await store.retry(ids) == [Changed.DONE] * 7 + [Changed.WRONG_STATE]
    assert await store.reschedule(ids, None) == [Changed.DONE] * 7 + [Changed.WRONG_STATE]
    assert await store.delete(ids) == [Changed.WRONG_STATE] * 7 + [Changed.DONE]
    assert await store.paused([f"q{number}" for number in range(8)]) == []
    assert await store.due_in([f"q{number}" for number in range(8)]) is None


@pytest.mark.usefixtures("three_at_a_time")
async def test_long_answers_come_in_parts(bench: Bench) -> None:
    store = bench.through
    keys = [b"key %d" % number for number in range(8)]
    for key in keys:
        await store.kv_write(KvWrite(key, b"\xff" + key))
    await store.enqueue([a_job(NAME, delay=timedelta(microseconds=1)) for _ in range(8)])
    await store.write_audit([AuditEntry(SystemClock().now(), "me", "retry", str(n), {}) for n in range(8)])

    assert await store.kv_get(keys) == [b"\xff" + key for key in keys]
    assert await store.kv_scan(b"key", after=None, limit=7) == [(key, b"\xff" + key) for key in keys[:7]]
    assert await store.promote(limit=100) == 8
    assert [entry.target for entry in await store.audit(limit=2)] == ["7", "6"]


async def test_nothing_is_asked_for_where_nothing_is_wanted(bench: Bench) -> None:
    store, before = bench.through, bench.proxy.requests

    assert await store.enqueue([]) == []
    assert await store.settle([]) == []
    assert (await store.claim(wanting(limit=1))).jobs == []
    assert (await store.claim(wanting(NAME, limit=0))).jobs == []
    assert [await store.get([]), await store.jobs(JobFilter(), after=None, limit=0)] == [[], []]
    assert bench.proxy.requests == before


async def test_a_token_that_is_not_known_or_missing_is_said_at_the_open(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    for token, said in ((ANOTHER, "refused the token"), (None, "wants a token")):
        store = open_store(bench.serving.url, token=token)

        with pytest.raises(StoreUnavailable, match=said) as told:
            await store.open()

        assert not told.value.retryable
        assert ANOTHER not in f"{told.value!r} {store!r} {vars(store)!r} {caplog.text}"
        with pytest.raises(ClientClosed):
            await store.stats()


async def test_what_is_not_windlass_is_said_at_the_open() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        store = open_store(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token=TOKEN)

        with pytest.raises(StoreUnavailable, match="not windlass serve"):
            await store.open()


def test_a_token_is_given_by_code_or_by_the_environment_and_shown_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_TOKEN", f" {TOKEN}\n")
    by_environment = open_store("https://host")
    by_code = open_store("https://host", token=ANOTHER)
    app = windlass.App("https://host", token=ANOTHER)

    assert [vars(store)["_options"].token for store in (by_environment, by_code)] == [TOKEN, ANOTHER]
    # as every setting: what the environment says goes over the code of an app
    assert vars(app.client.store)["_options"].token == TOKEN
    shown = f"{app!r} {vars(app)!r} {list(app.config)!r} {app.config!r} {vars(by_code)!r} {by_code.sibling()!r}"
    assert TOKEN not in shown
    assert ANOTHER not in shown


@pytest.mark.parametrize("url", ["memory://", "sqlite:///jobs.db"])
def test_a_token_for_a_store_that_has_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="token="):
        windlass.connect(url, token=TOKEN)


@pytest.mark.parametrize("url", ["http://me:secret@host", "https://host?token=secret", "http://host?tokn=secret"])
def test_a_secret_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidURL) as told:
        windlass.connect(url)

    assert "secret" not in str(told.value)


async def test_there_is_no_transaction_to_join(bench: Bench) -> None:
    with pytest.raises(NotTransactional, match="http"):
        bench.direct.transaction()
    async with windlass.connect(bench.serving.url, token=TOKEN) as client:
        with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(NotTransactional, match="http"):
            await client.enqueue(NAME, connection=connection)


async def test_a_close_finishes_what_was_accepted_and_takes_nothing_more(bench: Bench) -> None:
    store = bench.serving.door()
    await store.open()
    accepted = [asyncio.ensure_future(store.enqueue([a_job(NAME)])) for _ in range(50)]
    await asyncio.sleep(0)

    await store.close()

    assert [each.created for [each] in await asyncio.gather(*accepted)] == [True] * 50
    with pytest.raises(ClientClosed):
        await store.enqueue([a_job(NAME)])
    with pytest.raises(ClientClosed):
        await store.stats()


async def test_calls_outlast_a_serving_side_that_is_gone_for_a_while(bench: Bench) -> None:
    await bench.serving.stop()
    calls = [asyncio.ensure_future(call(bench.direct)) for call in LOOKS.values()]
    calls.append(asyncio.ensure_future(bench.direct.enqueue([a_job(NAME)])))
    done, _ = await asyncio.wait(calls, timeout=0.3)
    assert done == set()

    await bench.serving.start()

    await soon(asyncio.gather(*calls))
    [stats] = await bench.direct.stats(NAME)
    assert stats.pending == 1


async def test_whoever_waits_hears_of_news_again_when_the_serving_side_is_back(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="windlass.http")
    with listening(bench.direct, queue_topic(NAME)) as rung:
        await soon(rung.wait())
        await bench.restart()
        rung.clear()

        # at the reconnect, since nobody knows what was told meanwhile
        await soon(rung.wait())
        rung.clear()
        await bench.direct.enqueue([a_job(NAME)])

        await soon(rung.wait())
    assert TOKEN not in caplog.text


async def test_news_that_others_make_and_news_of_our_own_are_heard(bench: Bench) -> None:
    with listening(bench.direct, queue_topic(NAME)) as rung:
        await soon(rung.wait())
        for store in (bench.through, bench.direct, bench.serving.store):
            rung.clear()
            await store.enqueue([a_job(NAME)])

            await soon(rung.wait())


async def test_whether_news_is_heard_is_a_finding(bench: Bench) -> None:
    names = [finding.name for finding in await bench.direct.check()]

    with listening(bench.direct, queue_topic(NAME)) as rung:
        await soon(rung.wait())
        findings = await bench.direct.check()

    assert [finding.name for finding in findings] == [*names, "news over HTTP"]
    assert findings[-1].level == "ok"


async def test_a_sibling_is_another_door_to_the_same_jobs(bench: Bench) -> None:
    sibling = bench.direct.sibling()
    await sibling.open()
    [done] = await sibling.enqueue([a_job(NAME)])
    await sibling.close()

    [job] = await bench.direct.get([done.id])

    assert job is not None
    assert job.state is State.PENDING


async def test_a_job_comes_back_as_it_was_sent(bench: Bench) -> None:
    payload = bytes(range(256))
    sent = a_job(NAME, payload=payload, kind="a.kind", kv={b"\xff\x00": b"\x00\xff", b"text": "ü".encode()})
    sent = sent._replace(headers={"a": "ü", "b": ""}, tenant="t/1#2", priority=7, limit_key="l", codec="json")
    await bench.direct.enqueue([sent])

    [job] = await bench.direct.get([sent.id])

    assert job is not None
    names = ("id", "queue", "kind", "payload", "codec", "headers", "tenant", "priority", "max_attempts", "limit_key")
    assert [getattr(job, name) for name in names] == [getattr(sent, name) for name in names]
    assert await bench.direct.kv_get([b"\xff\x00", b"text"]) == [b"\x00\xff", "ü".encode()]


async def test_a_schedule_comes_back_as_it_was_written(bench: Bench) -> None:
    for payload in (b' {"a": 1}\n', b'{"a":1}', b"\xff", b"", b"null"):
        sent = replace(a_schedule("s/1#2"), payload=payload, codec="json", headers={"a": "ü"})
        await bench.direct.remove_schedule(sent.id)
        await bench.direct.write_schedule(sent, expected=None)

        [found] = (await bench.direct.schedules()).schedules

        assert replace(found, revision=0) == replace(sent, revision=0)


async def test_every_call_is_an_operation_that_is_asked_for(bench: Bench) -> None:
    for scenario in WRITES:
        before = bench.proxy.requests
        await (await scenario(bench.direct, f"name-{scenario.__name__}"))(bench.through)
        assert bench.proxy.requests - before == 1, scenario


async def test_a_served_store_can_be_opened_again_by_another_store(bench: Bench) -> None:
    first = bench.serving.door()
    await first.open()
    await first.close()
    again: Store = bench.serving.door()
    await again.open()

    assert await again.stats() == []
    await again.close()


async def test_two_serving_processes_on_one_store_are_told_apart(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    one, two = (InProcess(url, clock=SystemClock(), rng=SystemRng()) for _ in range(2))
    await one.start()
    await two.start()
    stores = [one.door(), two.door()]
    for store in stores:
        await store.open()

    [done] = await stores[0].enqueue([a_job(NAME)])
    [claim] = (await stores[1].claim(wanting(NAME))).jobs

    assert claim.job.id == done.id
    for store in stores:
        await store.close()
    await one.stop()
    await two.stop()


async def test_a_command_that_is_repeated_by_its_request_id_is_done_once(bench: Bench) -> None:
    assert await bench.through.lock("l", "h", MINUTE)

    freed = [await bench.through.do(FreeLock("l", "h"), request_id="free-l") for _ in range(2)]

    assert freed == [True, True]
    assert not await bench.through.unlock("l", "h")


@pytest.mark.usefixtures("three_at_a_time")
async def test_each_part_of_a_large_command_is_done_once_by_its_request_id(bench: Bench) -> None:
    jobs = [a_job(NAME) for _ in range(7)]
    await bench.through.enqueue(jobs)
    command = CancelJobs([job.id for job in jobs], KEEP_ALL)

    cancelled = [await bench.through.do(command, request_id="cancel-all") for _ in range(2)]

    assert cancelled == [[CancelOutcome.REMOVED] * 7] * 2
