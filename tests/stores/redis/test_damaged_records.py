"""Damaged records that are no jobs: each is left out or shown as damaged, and spoils no other."""

import struct
from typing import Final

import msgspec
import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.stores.redis.calls import LATER, MINUTE, NOW, settlement, wanting
from windlass.core.filters import JobFilter
from windlass.core.job import Failure
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import Changed, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.verdict import ToRetry
from windlass.testing.conformance.given import a_job, a_schedule


class Keys:
    """The keys of a store, written past it."""

    def __init__(self, url: str) -> None:
        [self._server] = servers_of(url)
        self._begin = f"{{{prefix_of(url)}}}|"

    def write(self, command: str, key: str, *words: str | bytes | int) -> None:
        ask(self._server, command, self._begin + key, *words)

    def read(self, command: str, key: str, *words: str) -> bytes:
        return str(ask(self._server, command, self._begin + key, *words)).encode(errors="surrogateescape")

    def find(self, pattern: str) -> str:
        [key] = ask(self._server, "KEYS", self._begin + pattern)
        return str(key).removeprefix(self._begin)


@pytest.fixture
def keys(url: str) -> Keys:
    return Keys(url)


SCHEDULES: Final[dict[str, tuple[str, str, str | bytes]]] = {
    "record": ("HSET", "record", b"\x91"),
    "rule": ("HSET", "record", b"\x9b\xa1\xff"),
    "overlap": ("HSET", "overlap", b"\xff"),
    "next_run_at": ("HSET", "next_run_at", "9223372036854775807"),
    "revision": ("HSET", "revision", "text"),
}


@pytest.mark.parametrize("field", SCHEDULES)
async def test_a_damaged_schedule_is_shown_as_damaged_beside_the_others(store: Store, keys: Keys, field: str) -> None:
    for name in "abc":
        await store.write_schedule(a_schedule(name, NOW), expected=None)
    command, name, value = SCHEDULES[field]
    keys.write(command, "schedule|b", name, value)

    _, schedules = await store.schedules()
    due = (await store.due_schedules([], limit=9)).due

    assert [(schedule.id, schedule.damage is None) for schedule in schedules] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]
    assert [schedule.id for schedule in due] == ["a", "b", "c"]
    assert (name if field == "rule" else field) in (schedules[1].damage or "")
    assert await store.remove_schedule("b")


async def test_a_schedule_that_is_no_hash_is_shown_as_damaged(store: Store, keys: Keys) -> None:
    for name in "ab":
        await store.write_schedule(a_schedule(name, LATER), expected=None)
    keys.write("DEL", "schedule|a")
    keys.write("SET", "schedule|a", "text")

    _, schedules = await store.schedules()

    assert [(schedule.id, schedule.damage is None) for schedule in schedules] == [("a", False), ("b", True)]
    assert isinstance(schedules[0], Schedule)


async def test_a_damaged_server_is_left_out(store: Store, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    for name in "abc":
        await store.beat(ServerRecord(name, name, "host", 1, "1.0", NOW, NOW))
    keys.write("HSET", "servers", "a", b"\xff")
    keys.write("HSET", "servers", "b", "{}")

    found = [[server.id for server in await store.servers()] for _ in range(2)]

    assert found == [["c"], ["c"]]
    assert caplog.text.count("a server is damaged, and left out") == 2


async def test_a_damaged_entry_of_the_audit_is_left_out(
    store: Store, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write_audit([AuditEntry(NOW, "me", "retry", name, {}) for name in "ab"])
    keys.write("LPUSH", "audit", b"\x95\xff")

    assert {entry.target for entry in await store.audit(limit=9)} == {"a", "b"}
    assert "an entry of the audit is damaged, and left out" in caplog.text


async def test_damaged_counts_are_left_out_and_stop_no_job(
    store: Store, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    minute = keys.find("minute|*")
    for name, value in ((b"\xff", "1"), ("no name", "1"), ("q||dead", "text"), ("q||lost", "1")):
        keys.write("HSET", minute, name, value)
    keys.write("HSET", "totals|q", "dead", "text")
    keys.write("SADD", "queues", b"\xff")

    claims = (await store.claim(wanting("q", limit=2))).jobs
    [stats] = [stats for stats in await store.stats() if stats.queue == "q"]
    [counts] = await store.minutes(since=NOW, until=LATER)

    assert (len(claims), stats.running, stats.totals.enqueued, stats.totals.dead) == (2, 2, 2, 0)
    assert (counts.queue, counts.counts.enqueued) == ("q", 2)
    assert [row.queue for row in await store.waiting()] == []
    assert "a count of a minute is damaged, and left out" in caplog.text
    assert "a queue is damaged, and left out" in caplog.text


@pytest.mark.parametrize("queue, value", [("text", "text"), ("broken", "1.5"), ("huge", "1e300"), ("empty", "")])
async def test_a_damaged_total_counts_as_0_and_is_logged_once(
    store: Store, keys: Keys, caplog: pytest.LogCaptureFixture, queue: str, value: str
) -> None:
    await store.enqueue([a_job(queue), a_job(queue)])
    keys.write("HSET", f"totals|{queue}", "retried", value)

    found = [await store.stats() for _ in range(2)]

    assert [[(stats.totals.enqueued, stats.totals.retried) for stats in each] for each in found] == [[(2, 0)]] * 2
    assert caplog.text.count(f"a total of a queue is damaged, and counted as 0: retried of {queue}") == 1


async def test_damaged_timings_are_left_out(store: Store, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    claimed_at = (await store.schedules()).now.replace(second=0, microsecond=0)
    timing = TimingCount(claimed_at, "q", "a", "ran", 3, 2)
    await store.write_timings([timing])
    key = keys.find("timing|*")
    for name, value in ((b"\xff", "1"), ("q|a|slept|1", "1"), ("q|a|ran|x", "1"), ("q|a|ran|4", "text")):
        keys.write("HSET", key, name, value)

    assert await store.timings(since=claimed_at, until=claimed_at + MINUTE) == [timing]
    assert "a timing of a minute is damaged, and left out" in caplog.text


@pytest.mark.parametrize("number", [b"\xa4text", b"\xcf" + b"\xff" * 8])
async def test_a_damaged_sequence_number_does_not_break_paging(store: Store, keys: Keys, number: bytes) -> None:
    """The next page begins at the sequence number of the last job of a page."""
    jobs = [a_job() for _ in range(4)]
    await store.enqueue(jobs)
    head = keys.read("HGET", f"job|{jobs[1].id}", "head")
    [_, *others] = msgspec.msgpack.decode(b"\x96" + head, type=list[msgspec.Raw])
    keys.write("HSET", f"job|{jobs[1].id}", "head", number + b"".join(map(bytes, others)))

    found = await store.jobs(JobFilter(), after=None, limit=2)
    found += await store.jobs(JobFilter(), after=found[-1].seq, limit=9)

    assert [job.id for job in found] == [job.id for job in jobs]
    assert [job.damage is not None for job in found] == [False, True, False, False]


@pytest.mark.parametrize("ended_at", ["text", "1e300", "-9223372036854775808", "0.5"])
async def test_a_retry_writes_no_damaged_time_into_the_history(store: Store, keys: Keys, ended_at: str) -> None:
    job = a_job()
    await store.enqueue([job])
    await store.cancel([job.id], KEEP_ALL)
    keys.write("HSET", f"job|{job.id}", "finished_at", ended_at)

    assert await store.retry([job.id]) == [Changed.DONE]

    [found] = await store.get([job.id])
    assert found is not None
    assert found.damage is None
    assert [(each.outcome, each.ended_at == each.retried_at) for each in found.history] == [("cancelled", True)]


@pytest.mark.parametrize("claimed_at", [b"\xa4text", b"\xcb" + struct.pack(">d", 1e300), b"\xc2"])
async def test_a_settlement_writes_no_damaged_time_into_the_history(
    store: Store, keys: Keys, claimed_at: bytes
) -> None:
    job = a_job()
    await store.enqueue([job])
    [claim] = (await store.claim(wanting("default"))).jobs
    stored = keys.read("HGET", f"job|{job.id}", "claim")
    [token, attempt, delivery, _, worker] = msgspec.msgpack.decode(b"\x95" + stored, type=list[msgspec.Raw])
    parts = [bytes(part) for part in (token, attempt, delivery)]
    keys.write("HSET", f"job|{job.id}", "claim", b"".join([*parts, claimed_at, bytes(worker)]))

    assert await store.settle([settlement(claim, ToRetry(MINUTE, Failure("x")))]) == [Settled.DONE]

    [found] = await store.get([job.id])
    assert found is not None
    assert (found.state, [each.started_at for each in found.history]) == (State.SCHEDULED, [found.created_at])
