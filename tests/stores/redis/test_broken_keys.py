"""Keys of the store and its queues whose value is not of their type: an error names each, and nothing is half done."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, servers_of, with_options
from tests.stores.redis.calls import LATER, MINUTE, NOW, opened, settlement, wanting
from windlass.core.errors import OutcomeUnknown, StoreCorrupt
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, PreparedJob
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import KvAny, KvWrite, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL, Retention
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, Verdict
from windlass.testing.conformance.given import a_job, a_schedule


class Keys:
    """The keys of a store, written past it."""

    def __init__(self, url: str) -> None:
        [self._server] = servers_of(url)
        self._url = url
        self._begin = f"{{{prefix_of(url)}}}|"

    def write(self, command: str, key: str, *words: str | int) -> None:
        ask(self._server, command, self._begin + key, *words)

    def read(self, command: str, key: str, *words: str) -> Any:  # noqa: ANN401 - whatever is stored
        return ask(self._server, command, self._begin + key, *words)

    def breaks(self, key: str) -> None:
        """Let a key be of a type that none of the store is of."""
        self.write("DEL", key)
        self.write("XADD", key, "*", "name", "value")

    def left(self) -> dict[str, object]:
        """Return what is stored, but for the number of the last enqueue, which may have gaps."""
        return {
            key: ask(self._server, "DUMP", key)
            for key in keys_of(self._url)
            if "|receipt|" not in key and not key.endswith("|seq")
        }


@pytest.fixture
def keys(url: str) -> Keys:
    return Keys(url)


SERVER: Final = ServerRecord("s#1", "s", "host", 7, "1.0", NOW, NOW, queues=("q",), running=2)
CALLS: Final[dict[str, Callable[[Store], Awaitable[object]]]] = {
    "timed": lambda store: store.timed_keys(limit=9),
    "queues": lambda store: store.stats(),
    "paused": lambda store: store.claim(wanting("q")),
    "moved": lambda store: store.claim(wanting("q")),
    "kinds|q": lambda store: store.claim(wanting("q")),
    "ready|q|": lambda store: store.claim(wanting("q")),
    "leased|q": lambda store: store.claim(wanting("q")),
    "due|q": lambda store: store.promote(limit=9),
    "jobs|q": lambda store: store.jobs(JobFilter(), after=None, limit=9),
    "ended|q|dead": lambda store: store.dead(None, before=None, limit=9),
    "ended|q|succeeded": lambda store: store.prune(Retention(most=1), limit=9),
    "totals|q": lambda store: store.stats(),
    "kv": lambda store: store.kv_get([b"k"]),
    "kv_keys": lambda store: store.kv_write(KvWrite(b"k", b"v", KvAny.ANY)),
    "schedules": lambda store: store.schedules(),
    "schedules_due": lambda store: store.due_schedules([], limit=9),
    "revision": lambda store: store.write_schedule(a_schedule("s", LATER), expected=None),
    "servers": lambda store: store.beat(SERVER),
    "servers_seen": lambda store: store.servers(),
    "audit": lambda store: store.write_audit([AuditEntry(NOW, "me", "retry", "name", {})]),
}


@pytest.mark.parametrize("key", CALLS)
async def test_an_error_names_the_key_whose_value_is_of_another_type(store: Store, keys: Keys, key: str) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    keys.breaks(key)

    with pytest.raises(StoreCorrupt) as told:
        await CALLS[key](store)

    assert f" {key} is a stream instead of a " in str(told.value)
    assert (told.value.job_id, told.value.retryable) == (None, False)


@pytest.mark.parametrize("key", [key for key in CALLS if key.endswith(("|q", "|q|")) and key != "due|q"])
async def test_a_claim_from_a_queue_with_a_broken_line_takes_no_job_out_of_its_line(
    store: Store, keys: Keys, key: str
) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    keys.breaks(key)
    before = keys.left()

    try:
        claims = (await store.claim(wanting("q", limit=9))).jobs
    except StoreCorrupt:
        assert keys.left() == before
    else:
        assert len(claims) == 2


async def test_a_settlement_that_cannot_be_written_names_the_key_in_its_cause(store: Store, keys: Keys) -> None:
    await store.enqueue([a_job("q")])
    [claim] = (await store.claim(wanting("q"))).jobs
    keys.breaks("leased|q")

    with pytest.raises(OutcomeUnknown) as told:
        await store.settle([settlement(claim)])

    assert " leased|q is a stream instead of a zset" in str(told.value.__cause__)


JOBS: Final[dict[str, Callable[[], list[PreparedJob]]]] = {
    "one": lambda: [a_job("q")],
    "many": lambda: [a_job("other"), a_job("q"), a_job("q")],
    "later": lambda: [a_job("q", delay=MINUTE)],
    "keyed": lambda: [a_job("other"), a_job("q", unique=Unique("k"))],
}


BROKEN: Final = [("seq", "text"), *((key, None) for key in ("seq", "jobs|q", "kinds|q", "ready|q|", "queues"))]
"""Keys, and what each has then; None is a value of another type."""


@pytest.mark.parametrize("spread", [False, True], ids=["", "spread"])
@pytest.mark.parametrize("way", JOBS)
@pytest.mark.parametrize("key, value", BROKEN)
async def test_of_an_enqueue_that_meets_a_broken_key_nothing_is_written(
    url: str, way: str, key: str, value: str | None, *, spread: bool
) -> None:
    jobs = JOBS[way]()
    async with opened(with_options(url, "spread=queues") if spread else url) as store:
        await store.enqueue([a_job("other")])
        keys = Keys(url)
        if spread:
            if way != "one":
                # the jobs of each queue are a step of their own
                jobs = jobs[-1:]
            await store.enqueue([a_job("q", kind="another")])
            await store.stats()
            keys = Keys(url.replace(prefix_of(url), f"{prefix_of(url)}|q"))
        if key == "queues":
            # the first job of a queue is what needs it
            keys.write("DEL", "totals|q")
        if value is None:
            keys.breaks(key)
        else:
            keys.write("SET", key, value)
        before = keys.left()

        with pytest.raises(StoreCorrupt, match=f"the value at {key} ".replace("|", "[|]")):
            await store.enqueue(jobs)

        assert keys.left() == before
        assert await store.get([job.id for job in jobs]) == [None] * len(jobs)
        keys.write("DEL", key)
        assert all(each.created for each in await store.enqueue(jobs))


@pytest.mark.parametrize("way", JOBS)
@pytest.mark.parametrize("key", ["totals|q", "minute"])
@pytest.mark.parametrize("value", ["text", "9223372036854775807", None])
async def test_a_job_is_enqueued_whole_where_a_count_is_damaged(
    store: Store, keys: Keys, way: str, key: str, value: str | None
) -> None:
    await store.enqueue([a_job("q")])
    name, field = (key, "enqueued") if key == "totals|q" else (the_minute(keys), "q||enqueued")
    if value is None:
        keys.breaks(name)
    else:
        keys.write("HSET", name, field, value)
    jobs = JOBS[way]()

    assert all(each.created for each in await store.enqueue(jobs))

    assert [job and job.damage for job in await store.get([job.id for job in jobs])] == [None] * len(jobs)
    waiting = [job for job in jobs if job.delay is None]
    assert len((await store.claim(wanting("q", "other", limit=9))).jobs) == len(waiting) + 1


def the_minute(keys: Keys) -> str:
    [name] = [name for name in keys.left() if "|minute|" in name]
    return "minute|" + name.rpartition("|")[2]


async def test_timings_are_added_up_beside_a_damaged_one(store: Store, keys: Keys) -> None:
    minute = (await store.schedules()).now.replace(second=0, microsecond=0)
    timings = [TimingCount(minute, "q", kind, "ran", 3, 2) for kind in "abc"]
    await store.write_timings(timings)
    [name] = [name for name in keys.left() if "|timing|" in name]
    keys.write("HSET", "timing|" + name.rpartition("|")[2], "q|b|ran|3", "text")

    await store.write_timings(timings)

    found = await store.timings(since=minute, until=minute + MINUTE)
    assert sorted((timing.kind, timing.attempts) for timing in found) == [("a", 4), ("c", 4)]


class Moved(NamedTuple):
    """Jobs of a queue: what is moved while a line of it is broken."""

    store: Store
    pending: list[JobId]
    dead: list[JobId]
    claim: Claim


async def some_jobs(store: Store) -> Moved:
    """Leave a pending, a dead and a running job."""
    jobs = await store.enqueue([a_job("q", max_attempts=1), a_job("q"), a_job("q")])
    [dead, running] = (await store.claim(wanting("q", limit=2))).jobs
    await store.settle([settlement(dead, ToDead(FAILURE))])
    return Moved(store, [jobs[2].id], [dead.job.id], running)


def settles(verdict: Verdict) -> Callable[[Moved], Awaitable[object]]:
    return lambda given: given.store.settle([settlement(given.claim, verdict)])


def rescues(**options: Any) -> Callable[[Moved], Awaitable[object]]:  # noqa: ANN401
    return lambda given: given.store.rescue(RescueRequest(force=True, **options), KEEP_ALL)


FAILURE: Final = Failure("no")
MOVES: Final[dict[str, tuple[Callable[[Moved], Awaitable[object]], tuple[str, ...]]]] = {
    "cancel": (lambda given: given.store.cancel(given.pending, KEEP_ALL), ("ended|q|cancelled",)),
    "retry": (lambda given: given.store.retry(given.dead), ("ended|q|dead", "dead|q", "ready|q|", "kinds|q")),
    "reschedule": (lambda given: given.store.reschedule(given.pending, LATER), ("due|q",)),
    "rescue": (rescues(), ("ready|q|", "kinds|q")),
    "rescue to dead": (rescues(to="dead"), ("ended|q|dead", "dead|q")),
    "nack": (settles(ToRetry(MINUTE, FAILURE)), ("leased|q", "due|q")),
    "snooze": (settles(ToSnoozed(MINUTE)), ("due|q",)),
    "release": (settles(ToReleased()), ("ready|q|", "kinds|q")),
    "dead letter": (settles(ToDead(FAILURE)), ("leased|q", "ended|q|dead", "dead|q")),
    "cancelled": (settles(ToCancelled("why")), ("ended|q|cancelled",)),
}


@pytest.mark.parametrize("move, key", [(move, key) for move in MOVES for key in MOVES[move][1]])
async def test_nothing_is_written_of_a_job_whose_line_is_broken(store: Store, keys: Keys, move: str, key: str) -> None:
    given = await some_jobs(store)
    keys.breaks(key)
    before = keys.left()

    with pytest.raises((StoreCorrupt, OutcomeUnknown)) as told:
        await MOVES[move][0](given)

    assert f"{key} is a stream instead of a " in f"{told.value} {told.value.__cause__}"
    assert keys.left() == before


async def test_other_queues_are_settled_beside_one_with_a_broken_line(store: Store, keys: Keys) -> None:
    await store.enqueue([a_job("q"), a_job("other")])
    claims = (await store.claim(wanting("q", "other", limit=2))).jobs
    keys.breaks("due|q")

    with pytest.raises(OutcomeUnknown):
        await store.settle([settlement(claim, ToSnoozed(MINUTE)) for claim in claims])

    keys.write("DEL", "due|q")
    found = {stats.queue: (stats.running, stats.scheduled) for stats in await store.stats()}
    assert found == {"q": (1, 0), "other": (0, 1)}
    again = await store.settle([settlement(claim, ToSnoozed(MINUTE)) for claim in claims])
    assert set(again) == {Settled.DONE, Settled.REPEATED}


async def test_a_rescue_names_a_broken_line(store: Store, keys: Keys) -> None:
    await store.enqueue([a_job("q")])
    keys.breaks("leased|q")

    with pytest.raises(StoreCorrupt, match=r"leased\|q is a stream"):
        await store.rescue(RescueRequest(), KEEP_ALL)
