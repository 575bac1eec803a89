"""Bad input is refused by a named error before anything is written."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

import windlass
from windlass import (
    Client,
    EncodeError,
    InvalidName,
    InvalidValue,
    JobFilter,
    NewJob,
    PayloadTooLarge,
    Unique,
    ValueTooLarge,
)

Call = Callable[[Client], Awaitable[object]]
JOB = "0190a0b0-0000-7000-8000-000000000000"
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that it is naive is the point
AWARE = datetime(2026, 1, 1, tzinfo=UTC)
HUGE = b"x" * (1024 * 1024 + 1)

ENQUEUES: list[tuple[dict[str, object], type[Exception]]] = [
    ({"queue": ""}, InvalidName),
    ({"queue": "a b"}, InvalidName),
    ({"queue": "q" * 201}, InvalidName),
    ({"queue": None}, InvalidName),
    ({"kind": ""}, InvalidName),
    ({"tenant": "ä"}, InvalidName),
    ({"payload": HUGE}, PayloadTooLarge),
    ({"payload": "x" * len(HUGE)}, PayloadTooLarge),
    ({"payload": object()}, EncodeError),
    ({"payload": {1, object()}}, EncodeError),
    ({"id": "no uuid"}, InvalidValue),
    ({"id": 7}, InvalidValue),
    ({"priority": -1}, InvalidValue),
    ({"priority": 2**31}, InvalidValue),
    ({"priority": True}, InvalidValue),
    ({"priority": 1.5}, InvalidValue),
    ({"max_attempts": 0}, InvalidValue),
    ({"max_attempts": False}, InvalidValue),
    ({"run_at": NAIVE}, InvalidValue),
    ({"run_at": "tomorrow"}, InvalidValue),
    ({"run_at": 5}, InvalidValue),
    ({"run_at": AWARE, "delay": 5}, InvalidValue),
    ({"delay": -1}, InvalidValue),
    ({"delay": timedelta(seconds=-1)}, InvalidValue),
    ({"delay": float("nan")}, InvalidValue),
    ({"delay": float("inf")}, InvalidValue),
    ({"delay": True}, InvalidValue),
    ({"delay": "1"}, InvalidValue),
    ({"unique": ""}, InvalidName),
    ({"unique": 5}, InvalidValue),
    ({"headers": {"a": 1}}, InvalidValue),
    ({"headers": {"a b": "1"}}, InvalidName),
    ({"headers": [("a", "1")]}, InvalidValue),
    ({"headers": {"a": "x" * 8193}}, ValueTooLarge),
    ({"headers": {"a": "\ud800"}}, InvalidValue),
    ({"kv": {"": b""}}, InvalidValue),
    ({"kv": {"k" * 1025: b""}}, InvalidValue),
    ({"kv": {"k": "text"}}, InvalidValue),
    ({"kv": {"k": b"x" * (256 * 1024 + 1)}}, ValueTooLarge),
    ({"kv": [b"k"]}, InvalidValue),
]
ENQUEUE_IDS = [f"{'-and-'.join(given)}-{number}" for number, (given, _) in enumerate(ENQUEUES)]

CALLS: list[tuple[str, Call, type[Exception]]] = [
    ("a string for jobs", lambda c: c.enqueue_many("jobs"), InvalidValue),  # type: ignore[arg-type]
    ("one job for jobs", lambda c: c.enqueue_many(NewJob("email")), InvalidValue),  # type: ignore[arg-type]
    ("tuples for jobs", lambda c: c.enqueue_many([("email", b"")]), InvalidValue),  # type: ignore[list-item]
    ("no jobs at all", lambda c: c.enqueue_many(None), InvalidValue),  # type: ignore[arg-type]
    ("no queue", lambda c: c.claim(""), InvalidName),
    ("a queue in a list", lambda c: c.claim(["email"]), InvalidName),  # type: ignore[arg-type]
    ("queues of bytes", lambda c: c.claim_many(b"email"), InvalidValue),  # type: ignore[arg-type]
    ("a negative limit", lambda c: c.claim_many("email", limit=-1), InvalidValue),
    ("a limit that is true", lambda c: c.claim_many("email", limit=True), InvalidValue),
    ("a negative wait", lambda c: c.claim("email", wait=-1), InvalidValue),
    ("a wait that is not a number", lambda c: c.claim("email", wait=float("nan")), InvalidValue),
    ("a negative lease", lambda c: c.claim("email", lease=-1), InvalidValue),
    ("kinds as a string", lambda c: c.claim("email", kinds="send"), InvalidValue),
    ("an empty kind", lambda c: c.claim("email", kinds=[""]), InvalidName),
    ("an id for a claim", lambda c: c.ack(JOB), InvalidValue),  # type: ignore[arg-type]
    ("nothing for a claim", lambda c: c.nack(None, "no"), InvalidValue),  # type: ignore[arg-type]
    ("a job for a claim", lambda c: c.renew(JOB), InvalidValue),  # type: ignore[arg-type]
    ("a number for an id", lambda c: c.get(5), InvalidValue),  # type: ignore[arg-type]
    ("a word for an id", lambda c: c.cancel("job"), InvalidValue),
    ("a word to wait for", lambda c: c.wait("job"), InvalidValue),
    ("a negative timeout", lambda c: c.wait(JOB, -1), InvalidValue),
    ("a dict for a filter", lambda c: c.jobs({"queue": "email"}), InvalidValue),  # type: ignore[arg-type]
    ("a negative page", lambda c: c.jobs(limit=-1), InvalidValue),
    ("a cursor that is no id", lambda c: c.dead_jobs(after="job"), InvalidValue),
    ("an empty queue's dead", lambda c: c.dead_jobs(""), InvalidName),
    ("a dict to retry", lambda c: c.retry({"queue": "email"}), InvalidValue),  # type: ignore[arg-type]
    ("a naive time", lambda c: c.reschedule(JOB, NAIVE), InvalidValue),
    ("no time", lambda c: c.reschedule(JOB, None), InvalidValue),  # type: ignore[arg-type]
    ("the stats of nothing", lambda c: c.stats(""), InvalidName),
    ("a pause of nothing", lambda c: c.pause(""), InvalidName),
    ("a resume of nothing", lambda c: c.resume("a b"), InvalidName),
    ("a rescue of bytes", lambda c: c.rescue(b"email"), InvalidValue),  # type: ignore[arg-type]
    ("a rescue to nowhere", lambda c: c.rescue(to="heaven"), InvalidValue),  # type: ignore[arg-type]
    ("a negative retention", lambda c: c.prune(keep_dead=-1), InvalidValue),
    ("a negative number kept", lambda c: c.prune(keep_max=-1), InvalidValue),
    ("an empty key", lambda c: c.kv.get(""), InvalidValue),
    ("a number for a key", lambda c: c.kv.get(5), InvalidValue),  # type: ignore[arg-type]
    ("text for a value", lambda c: c.kv.put("k", "v"), InvalidValue),  # type: ignore[arg-type]
    ("a large value", lambda c: c.kv.put("k", b"x" * (256 * 1024 + 1)), ValueTooLarge),
    ("a large value to compare", lambda c: c.kv.compare_and_set("k", None, b"x" * (256 * 1024 + 1)), ValueTooLarge),
    ("text to compare with", lambda c: c.kv.compare_and_delete("k", "v"), InvalidValue),  # type: ignore[arg-type]
    ("a negative scan", lambda c: c.kv.scan(b"", limit=-1), InvalidValue),
    ("a long prefix", lambda c: c.kv.scan("p" * 1025), InvalidValue),
    ("a connection to nothing", lambda c: c.enqueue("email", connection=object()), InvalidValue),
    ("a lock without a name", lambda c: c.lock("", 5).__aenter__(), InvalidName),
    ("a lock for no time", lambda c: c.lock("name", 0).__aenter__(), InvalidValue),
    ("a lock with a negative wait", lambda c: c.lock("name", 1, wait=-1).__aenter__(), InvalidValue),
]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with windlass.connect("memory://") as client:
        yield client


@pytest.mark.parametrize("given, error", ENQUEUES, ids=ENQUEUE_IDS)
async def test_a_bad_job_is_refused_and_nothing_is_written(
    client: Client, given: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await client.enqueue(**{"queue": "email", "payload": b"", **given})  # type: ignore[arg-type]

    assert await client.queues() == []
    assert await client.kv.scan() == []


@pytest.mark.parametrize("given, error", ENQUEUES, ids=ENQUEUE_IDS)
async def test_a_bad_job_refuses_its_whole_batch(
    client: Client, given: dict[str, object], error: type[Exception]
) -> None:
    bad = NewJob(**{"queue": "email", "payload": b"", **given})  # type: ignore[arg-type]

    with pytest.raises(error):
        await client.enqueue_many([NewJob("email"), bad])

    assert await client.queues() == []


@pytest.mark.parametrize("call, error", [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
async def test_a_bad_argument_is_refused(client: Client, call: Call, error: type[Exception]) -> None:
    with pytest.raises(error):
        await call(client)

    assert await client.queues() == []


async def test_an_empty_batch_is_no_job(client: Client) -> None:
    assert await client.enqueue_many([]) == []
    assert await client.enqueue_many(NewJob("email") for _ in range(0)) == []


async def test_a_batch_may_be_made_on_the_fly(client: Client) -> None:
    done = await client.enqueue_many(NewJob("email", b"%d" % n) for n in range(3))

    assert [(await client.get(one.id)).payload for one in done] == [b"0", b"1", b"2"]  # type: ignore[union-attr]


async def test_text_and_values_are_encoded_and_decoded_again(client: Client) -> None:
    for value in ["text", {"a": [1, None]}, 5, None, b"raw", bytearray(b"raw")]:
        await client.enqueue("email", value)

    claims = await client.claim_many("email", limit=10)

    assert [client.decode(claim.job) for claim in claims] == ["text", {"a": [1, None]}, 5, None, b"raw", b"raw"]
    assert [claim.job.codec for claim in claims] == ["json"] * 4 + ["raw"] * 2


async def test_a_job_is_as_its_caller_wrote_it(client: Client) -> None:
    headers = {"trace": "7"}
    done = await client.enqueue(
        "email",
        b"hello",
        id=JOB.upper(),
        kind="send",
        priority=3,
        delay=60,
        max_attempts=4,
        unique=Unique("key", until="finished"),
        headers=headers,
        tenant="north",
        kv={"sent": b"1"},
    )
    headers["trace"] = "changed"
    job = await client.get(done.id)

    assert done == (JOB, True)
    assert job is not None
    assert (job.kind, job.priority, job.max_attempts, job.tenant) == ("send", 3, 4, "north")
    assert job.run_at - job.created_at == timedelta(seconds=60)
    assert job.unique_key == "key"
    assert job.headers == {"trace": "7"}
    assert await client.kv.get("sent") == b"1"


async def test_a_limit_of_zero_gives_nothing(client: Client) -> None:
    await client.enqueue("email")

    assert await client.claim_many("email", limit=0, wait=60) == []
    assert await client.jobs(limit=0) == []
    assert await client.claim_many([], limit=5, wait=60) == []


async def test_a_payload_may_be_larger_when_the_setting_says_so() -> None:
    async with windlass.connect("memory://", max_payload=len(HUGE)) as client:
        assert (await client.enqueue("email", HUGE)).created


def test_a_filter_that_cannot_match_is_refused() -> None:
    with pytest.raises(InvalidValue):
        JobFilter(state="failed")
