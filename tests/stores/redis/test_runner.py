"""Scripts that meet every kind of trouble: repeated where that is right, in doubt only when they are, ended in time."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis.asking import ask
from tests.redis.frames import Request
from tests.redis.keys import with_options
from tests.redis.private import PrivateRedis
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import LOOKS, WRITES, Scenario, alike, left, opened
from tests.stores.redis.inside import idle_wires
from tests.stores.redis.saying import LAYOUT, a_server_that_says, bulk
from windlass.core.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from windlass.core.failpoint import arm, disarm
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.stores.redis.scripts import script
from windlass.stores.redis.wire import Wire
from windlass.testing.conformance.given import a_job, settlement, wanting

SHORT = 1.0
LOADING = "LOADING Redis is loading the dataset in memory"


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    yield
    disarm()


@pytest.fixture
async def through(proxy: Proxy, store: Store) -> AsyncIterator[Store]:  # noqa: ARG001 - has made the layout
    """A store behind a proxy, on a connection that is there."""
    async with opened(with_options(proxy.url, "timeout=20&connections=3")) as through:
        yield through


@pytest.fixture
async def hurried(proxy: Proxy, store: Store) -> AsyncIterator[Store]:  # noqa: ARG001 - has made the layout
    """One whose calls have little time."""
    async with opened(with_options(proxy.url, f"timeout={SHORT}")) as hurried:
        yield hurried
        proxy.release()


def runs_a_script(request: Request) -> bool:
    return request.name in (b"EVALSHA", b"EVAL")


async def no_way_back(proxy: Proxy, lost: asyncio.Event) -> None:
    await lost.wait()
    proxy.refusing = True


async def test_a_call_is_one_request(through: Store, proxy: Proxy) -> None:
    job = a_job("q")
    await through.enqueue([job])
    await through.stats("q")
    before = proxy.requests

    await through.stats("q")
    await through.enqueue([a_job("q")])

    assert proxy.requests - before == 2


async def test_to_connect_takes_no_look_at_the_disk(
    url: str,
    store: Store,  # noqa: ARG001 - has connected before
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(package: str) -> str:
        raise AssertionError(package)

    monkeypatch.setattr("importlib.metadata.version", read)

    async with opened(url) as another:
        assert await another.stats("q") == []


async def test_what_is_not_known_at_the_deadline_is_said_to_be_unknown(
    hurried: Store, proxy: Proxy, store: Store
) -> None:
    lost = proxy.drop_reply(runs_a_script)
    job = a_job("q")

    async with asyncio.TaskGroup() as group:
        group.create_task(no_way_back(proxy, lost))
        with pytest.raises(OutcomeUnknown) as told:
            await hurried.enqueue([job])

    assert told.value.job_id == job.id
    assert isinstance(told.value.__cause__, StoreUnavailable)
    assert (await store.stats("q"))[0].pending == 1


async def test_an_answer_that_cannot_be_read_leaves_a_write_in_doubt() -> None:
    info = bulk(b"redis_version:8.0.0\r\n")
    said = {b"INFO": info, script("layout").digest.encode(): LAYOUT, b"EVALSHA": b"HTTP/1.1 502 Bad Gateway\r\n"}
    job = a_job("q")
    async with a_server_that_says(said) as url, opened(url) as garbled:
        with pytest.raises(OutcomeUnknown) as told:
            await garbled.enqueue([job])
        with pytest.raises(StoreUnavailable) as unnamed:
            await garbled.kv_write(KvWrite(b"k", b"v"))

    assert told.value.job_id == job.id
    assert unnamed.value.retryable


async def test_many_who_share_a_script_are_each_told_of_their_own_job(hurried: Store, proxy: Proxy) -> None:
    await hurried.enqueue([a_job("q") for _ in range(5)])
    claims = (await hurried.claim(wanting("q", limit=5))).jobs
    lost = proxy.drop_reply(runs_a_script)

    async with asyncio.TaskGroup() as group:
        group.create_task(no_way_back(proxy, lost))
        ends = await asyncio.gather(*(hurried.settle([settlement(claim)]) for claim in claims), return_exceptions=True)

    assert [end.job_id for end in ends if isinstance(end, OutcomeUnknown)] == [claim.job.id for claim in claims]


async def test_without_a_job_to_name_a_doubt_is_a_store_that_did_not_answer(hurried: Store, proxy: Proxy) -> None:
    lost = proxy.drop_reply(runs_a_script)

    async with asyncio.TaskGroup() as group:
        group.create_task(no_way_back(proxy, lost))
        with pytest.raises(StoreUnavailable) as told:
            await hurried.kv_write(KvWrite(b"k", b"v"))

    assert told.value.retryable
    assert "it may have been done all the same" in str(told.value)


async def hung_up(wires: list[Wire]) -> None:
    """Return when these connections are known to have ended."""
    async with asyncio.timeout(10):
        while not all(wire.closed for wire in wires):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


async def test_a_call_that_was_never_sent_is_not_in_doubt(hurried: Store, proxy: Proxy, store: Store) -> None:
    proxy.refusing = True
    proxy.reset()
    await hung_up(idle_wires(hurried))

    with pytest.raises(StoreUnavailable) as told:
        await hurried.enqueue([a_job("q")])

    assert told.value.retryable
    assert await store.stats("q") == []


async def test_why_a_call_was_refused_to_the_end_is_told_and_nothing_is_in_doubt(hurried: Store, proxy: Proxy) -> None:
    for _ in range(100):
        proxy.fail(runs_a_script, LOADING)
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="loading the dataset") as told:
        await hurried.enqueue([a_job("q")])

    assert told.value.retryable
    assert SHORT / 2 < time.monotonic() - began < SHORT + 3


async def test_what_would_end_the_same_is_told_at_once(through: Store, proxy: Proxy, store: Store) -> None:
    proxy.fail(runs_a_script, "OOM command not allowed when used memory > 'maxmemory'.")
    before = proxy.requests

    with pytest.raises(StoreFull):
        await through.enqueue([a_job("q")])

    assert proxy.requests - before == 1
    assert await store.stats("q") == []


async def test_a_doubt_is_not_forgotten_when_the_repetition_is_refused(hurried: Store, proxy: Proxy) -> None:
    proxy.drop_reply(runs_a_script)
    for _ in range(100):
        proxy.fail(runs_a_script, LOADING)

    with pytest.raises(OutcomeUnknown):
        await hurried.enqueue([a_job("q")])


async def test_calls_after_a_black_hole_work_again_at_once(hurried: Store, proxy: Proxy) -> None:
    proxy.hold()
    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        await hurried.enqueue([a_job("q")])
    proxy.release()

    began = time.monotonic()
    assert (await hurried.enqueue([a_job("q")]))[0].created
    assert time.monotonic() - began < SHORT


async def test_connections_that_the_server_has_ended_while_idle_are_noticed(through: Store, proxy: Proxy) -> None:
    await asyncio.gather(*(through.kv_write(KvWrite(b"k", b"%d" % number)) for number in range(3)))
    idle = idle_wires(through)
    for client in [*proxy.clients]:
        # as by a server that ends: not by a reset
        client.writer.close()

    await hung_up(idle)
    before = proxy.requests
    await through.kv_write(KvWrite(b"k", b"v"))

    assert len(idle) == 3
    # one of them looks at the server, which may be another by now
    assert proxy.requests - before == 2


async def test_fifty_callers_share_two_connections(url: str, proxy: Proxy) -> None:
    async with opened(with_options(proxy.url, "connections=2")) as store:
        answers = await asyncio.gather(*(store.kv_write(KvWrite(b"k%d" % number, b"v")) for number in range(50)))

        assert answers == [True] * 50
        assert len(proxy.clients) <= 2
        assert len(await store.kv_scan(b"k", after=None, limit=100)) == 50
    assert url != proxy.url


async def test_who_waits_until_the_deadline_is_told_which_option_helps(proxy: Proxy, store: Store) -> None:
    async with opened(with_options(proxy.url, f"connections=1&timeout={SHORT}")) as narrow:
        proxy.hold(["answers"])
        ends = await asyncio.gather(*(narrow.stats("q") for _ in range(3)), return_exceptions=True)
        proxy.release()

    assert all(isinstance(end, StoreUnavailable) and end.retryable for end in ends)
    assert any("?connections=" in str(end) for end in ends)
    assert await store.stats("q") == []


class Forgetful:
    """A server that has forgotten all scripts whenever it is asked for one."""

    def __init__(self) -> None:
        self.server = PrivateRedis()
        self.times = 0

    def forget(self) -> None:
        self.times += 1
        ask(self.server.url, "SCRIPT", "FLUSH", "SYNC")


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Forgetful]:
    forgetful = Forgetful()
    with forgetful.server:
        yield forgetful


async def test_scripts_may_be_forgotten_between_any_two_calls(forgetful: Forgetful) -> None:
    url = with_options(forgetful.server.url, "prefix=forgetful")

    async def made(scenario: Scenario, name: str, *, forgets: bool) -> tuple[object, list[object]]:
        call = await scenario(store, name)
        if forgets:
            arm("redis.before_script", forgetful.forget)
        before = forgetful.times
        answer = await call(store)
        disarm()
        assert (forgetful.times > before) is forgets
        return alike(answer), await left(store, url, name)

    async with opened(url) as store:
        for scenario in WRITES:
            usual = await made(scenario, f"usual-{scenario.__name__}", forgets=False)
            assert await made(scenario, f"forgot-{scenario.__name__}", forgets=True) == usual, scenario
        arm("redis.before_script", forgetful.forget)
        for look in LOOKS.values():
            await look(store)


def test_a_script_is_known_by_the_whole_of_its_text() -> None:
    texts = {name: script(name) for name in ("enqueue", "claim", "settle", "stats")}

    assert len({one.digest for one in texts.values()}) == 4
    # what is there must come to an end also in a server that is full
    assert [name for name, one in texts.items() if one.text.startswith("#!lua flags=allow-oom\n")] == [
        "claim",
        "settle",
    ]
