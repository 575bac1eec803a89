"""What the pages on Redis say, tried on a server."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

import windlass
from tests.docs.pages import DOCS, rows, section, text_of
from tests.redis.private import DURABLE, PrivateRedis
from tests.redis.server import new_url
from windlass import ClaimLost, Client, Job, NewJob, NotAtomicHere, Server, StoreFull, Unique
from windlass.connect import open_store
from windlass.core.requests import ClaimRequest
from windlass.stores.redis import keys
from windlass.stores.redis.store import KEEPS_AT_MOST

RUNNING: Final = "howto/run-on-redis.md"
WORKING: Final = "explanation/how-redis-works-here.md"
COMING: Final = text_of("howto/come-from-rq-arq-or-celery-on-redis.md")
PYTHON: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
URLS: Final = sorted(
    {
        url
        for page in DOCS.rglob("*.md")
        for url in re.findall(r"(?:redis|rediss|redis\+sentinel|redis\+cluster)://[^\s|)\"'`]+", page.read_text())
        if not any(part in url for part in ("…", "***", "prefx"))
    }
)


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as url:
        yield url


@pytest.fixture
async def spread(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(f"{url}&spread=queues") as client:
        yield client


@pytest.mark.parametrize("url", URLS)
def test_every_url_of_every_page_can_be_read(url: str) -> None:
    open_store(url)


def test_the_page_on_how_it_works_knows_every_key() -> None:
    names = re.findall(r"^    (\w[\w|, ]+?)  ", keys.__doc__ or "", re.MULTILINE)
    made = {name.partition("|")[0] for line in names for name in line.split(", ")}
    told = set(re.findall(r"`(\w+)(?:\\\|…)?`", section(WORKING, "The keys")))

    assert len(made) > 25
    assert made == told


def test_the_page_has_the_most_records_that_are_kept() -> None:
    assert text_of(WORKING).count(f"`keep_max`, {KEEPS_AT_MOST:,} for each queue and end") == 1


async def one_call_for_two_queues(client: Client) -> None:
    await client.enqueue_many([NewJob("a"), NewJob("b")])


async def values_with_a_job(client: Client) -> None:
    await client.enqueue("a", kv={"k": b"v"})


async def a_job_for_another_queue_then(client: Client) -> None:
    claim = await client.claim("a")
    assert claim is not None
    await client.ack(claim, then=[NewJob("b")])


async def a_key_over_queues(client: Client) -> None:
    with pytest.raises(NotAtomicHere):
        await client.enqueue("a", unique=Unique("k", scope="global"))
    await client.enqueue("a", kind="send", unique=Unique("k", scope="kind"))


async def a_claim_by_priority(client: Client) -> None:
    await client.store.claim(ClaimRequest(["a", "b"], 1, timedelta(seconds=30), by_priority=True))


async def a_schedule_for_another_queue(client: Client) -> None:
    await client.schedules.put("s", 60, NewJob("b"))


REFUSED: Final[dict[str, Callable[[Client], Coroutine[Any, Any, None]]]] = {
    "`enqueue_many` with jobs for two queues": one_call_for_two_queues,
    "`kv=` with an enqueue or a settlement": values_with_a_job,
    "`then=`, or `ctx.then`, with a job for another queue": a_job_for_another_queue_then,
    '`Unique(scope="kind")` and `Unique(scope="global")`': a_key_over_queues,
    'claims by priority over several queues: `order="priority"` of a server': a_claim_by_priority,
    "`schedules.put` that moves a schedule to another queue": a_schedule_for_another_queue,
}


def test_the_page_has_every_call_that_is_tried_below() -> None:
    assert [call for call, _ in rows(RUNNING, "call")] == [*REFUSED]


@pytest.mark.parametrize("call", [*REFUSED])
async def test_what_needs_two_queues_is_refused_and_writes_nothing(spread: Client, call: str) -> None:
    await spread.enqueue("a", b"there")
    await spread.schedules.put("s", 60, NewJob("a"))

    with pytest.raises(NotAtomicHere):
        await REFUSED[call](spread)

    stats = await spread.stats()
    assert (stats.totals.enqueued, await spread.kv.scan()) == (1, [])


async def test_the_queues_of_a_claim_are_taken_from_one_after_the_other(spread: Client) -> None:
    for queue in ("b", "a"):
        await spread.enqueue(queue, b"")

    claims = await spread.claim_many(["a", "b"], limit=2)

    assert [claim.job.queue for claim in claims] == ["a", "b"]


async def test_what_was_acknowledged_is_there_after_a_kill_with_appendfsync_always() -> None:
    with PrivateRedis(conf=DURABLE) as server:
        async with windlass.connect(server.url) as client:
            done = await client.enqueue("email", b"hello")
            server.kill()
            server.start()

            assert (await client.stats()).pending == 1
            assert await client.get(done.id) is not None


async def test_a_claim_of_a_span_that_was_lost_is_none_any_more() -> None:
    """Without `appendonly`, and from a snapshot that was made before the claim."""
    with PrivateRedis() as server:
        async with windlass.connect(server.url) as client:
            kept = await client.enqueue("email", b"kept")
            server.ask("SAVE")
            lost = await client.enqueue("email", b"lost")
            claim = await client.claim("email")
            assert claim is not None
            server.kill()
            server.start()

            with pytest.raises(ClaimLost):
                await client.ack(claim)
            [again] = await client.claim_many("email", limit=5)
            assert (await client.get(lost.id), again.job.id, again.delivery) == (None, kept.id, claim.delivery)
            assert again.token != claim.token


async def test_a_server_that_forgets_jobs_is_refused_unless_the_user_insists() -> None:
    with PrivateRedis(conf={"maxmemory-policy": "allkeys-lru"}) as server:
        with pytest.raises(windlass.StoreUnavailable, match=r"evicting=allowed"):
            await windlass.connect(server.url).open()

        async with windlass.connect(f"{server.url}?evicting=allowed") as client:
            await client.enqueue("email", b"hello")


async def test_what_is_there_is_worked_off_when_memory_is_full() -> None:
    with PrivateRedis(conf={"maxmemory": "4mb"}) as server:
        async with windlass.connect(server.url) as client:
            with pytest.raises(StoreFull):
                await fill(client)
            claim = await client.claim("email")
            assert claim is not None

            await client.renew(claim)
            await client.ack(claim)

            assert (await client.stats()).succeeded == 1
            assert await client.prune(keep_succeeded=0) == 1


async def fill(client: Client) -> None:
    for _ in range(10_000):
        await client.enqueue("email", b"x" * 10_000)


async def test_a_job_takes_the_memory_that_the_page_says() -> None:
    jobs = 5_000
    with PrivateRedis() as server:
        version: str = server.ask("INFO", "server").get("valkey_version", "another")
        if not version.startswith("9.1."):
            pytest.skip(f"the page tells of Valkey 9.1, this is {version}")
        taken: dict[str, float] = {}

        def used() -> int:
            told = server.ask("INFO", "memory")
            return int(told["used_memory"]) - int(told["mem_clients_normal"]) - int(told["mem_aof_buffer"])

        def note(state: str) -> None:
            taken[state] = (used() - before) / jobs

        async with windlass.connect(server.url) as client:
            # what the first call brings along is no job's
            await client.enqueue("first", b"")
            before = used()
            for _ in range(jobs // 1_000):
                await client.enqueue_many([NewJob("email", b"x" * 100, kind="send") for _ in range(1_000)])
            note("waiting")
            claims = [await client.claim_many("email", limit=1_000) for _ in range(jobs // 1_000)]
            note("running")
            for some in claims:
                await asyncio.gather(*map(client.ack, some))
            note("succeeded, and kept")

    told = {state: int(size.replace(",", "")) for state, size, _ in rows(WORKING, "a job that is")}
    assert taken == {state: pytest.approx(size, rel=0.15) for state, size in told.items()}


def program(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program of the page on a store of this test's own, and return its names."""
    monkeypatch.setenv("WINDLASS_URL", url)
    [text] = [text for text in PYTHON.findall(COMING) if text.startswith(f"# {name}\n")]
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - code of our own pages
    return names


async def test_the_program_that_came_from_rq_does_as_it_did(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = program(url, "tasks.py", monkeypatch)

    await asyncio.to_thread(tasks["order"])

    async with tasks["app"] as app, Server(app):
        [ada, grace] = await app.client.jobs()
        await app.client.wait(ada.id, timeout=30)
        done = await app.client.get(ada.id)
    assert (done.state, done.result, done.max_attempts) == ("succeeded", b'"hello Ada"', 3)
    assert (grace.state, grace.queue) == ("scheduled", "mail")


async def test_the_program_that_came_from_arq_does_as_it_did(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = program(url, "fetching.py", monkeypatch)
    put_off = asyncio.Event()

    @tasks["app"].on_state_change  # type: ignore[untyped-decorator]
    def tell(_job: Job, _old: str, new: str) -> None:
        if new == "scheduled":
            put_off.set()

    async with tasks["app"] as app, Server(app):
        for _ in range(2):
            await tasks["order"]()
        assert await (await tasks["fetch"].enqueue("https://example.org")).result(timeout=30) == 200
        busy = await tasks["fetch"].enqueue("https://busy.example.org")
        await asyncio.wait_for(put_off.wait(), 30)
        job = await busy.job()
        [schedule] = await app.client.schedules.list()
        waiting = (await app.client.stats("default")).scheduled
    assert (job.state, job.attempt, schedule.id, waiting) == ("scheduled", 1, "tidy", 2)
    assert job.run_at - job.history[-1].ended_at == timedelta(seconds=5)


async def test_the_program_that_came_from_celery_does_as_it_did(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = program(url, "priorities.py", monkeypatch)

    await asyncio.to_thread(tasks["order"])

    async with tasks["app"] as app:
        [job] = await app.client.jobs()
    assert (job.state, job.priority) == ("scheduled", 300)
