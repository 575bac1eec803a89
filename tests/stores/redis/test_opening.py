"""What is looked at before the first job: version, layout, whether the server forgets; and how many have a write."""

import asyncio
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

import windlass
from proofs.children import eventually
from tests.redis.asking import ask
from tests.redis.keys import keys_of, new_prefix, prefix_of, with_options
from tests.redis.private import PrivateRedis
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import opened, wanting
from tests.stores.redis.saying import NOTHING, a_server_that_says, bulk
from windlass import InvalidValue, OutcomeUnknown, SchemaMissing, SchemaTooNew, StoreUnavailable
from windlass.connect import migrator, open_store, without_creating
from windlass.core.migrating import Migrator
from windlass.core.requests import KvWrite
from windlass.testing.conformance.given import a_job

PATIENCE: Final = 30.0


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis() as private:
        yield private


@contextmanager
def set_to(private: PrivateRedis, **settings: str) -> Generator[None]:
    """Let a server have other settings for a while."""
    names = [name.replace("_", "-") for name in settings]
    before = {name: private.ask("CONFIG", "GET", name)[1] for name in names}
    try:
        for name, value in zip(names, settings.values(), strict=True):
            private.ask("CONFIG", "SET", name, value)
        yield
    finally:
        for name, value in before.items():
            private.ask("CONFIG", "SET", name, value)


@pytest.mark.parametrize(
    "policy, forgets",
    [("allkeys-lru", "jobs"), ("allkeys-random", "jobs"), ("volatile-lru", "locks, unique"), ("volatile-ttl", "locks")],
)
async def test_a_server_that_forgets_is_refused_unless_that_is_allowed(
    private: PrivateRedis, policy: str, forgets: str
) -> None:
    url = with_options(private.url, f"prefix={new_prefix()}")
    with set_to(private, maxmemory_policy=policy):
        with pytest.raises(
            StoreUnavailable, match=f"{policy}: .* forgets {forgets}.*noeviction.*evicting=allowed"
        ) as told:
            await open_store(url).open()
        async with opened(with_options(url, "evicting=allowed")) as store:
            assert (await store.enqueue([a_job("q")]))[0].created

    assert not told.value.retryable


@pytest.mark.parametrize("version", ["6.2.14", "5.0.0", "2.8"])
async def test_a_server_that_is_too_old_is_refused(version: str) -> None:
    info = bulk(f"# Server\r\nredis_version:{version}\r\nrole:master\r\n".encode())
    async with a_server_that_says({b"INFO": info, b"EVALSHA": NOTHING}) as url:
        with pytest.raises(StoreUnavailable, match=rf"is version {version}: Redis 7 or Valkey 8") as told:
            await open_store(url).open()

    assert not told.value.retryable


async def test_a_store_that_is_not_there_is_made_unless_that_is_forbidden(url: str) -> None:
    with pytest.raises(SchemaMissing, match=r"no Windlass store, and \?create=no forbids making one.*migrate") as told:
        await open_store(with_options(url, "create=no")).open()
    assert (keys_of(url), told.value.retryable) == (set(), False)

    async with opened(url):
        pass

    assert keys_of(url) == {f"{{{prefix_of(url)}}}|meta"}
    async with opened(with_options(url, "create=no")) as store, opened(without_creating(url)):
        assert (await store.enqueue([a_job("q")]))[0].created


async def test_a_layout_that_is_newer_than_we_are_is_refused_and_left_alone(url: str) -> None:
    meta = f"{{{prefix_of(url)}}}|meta"
    ask(url, "HSET", meta, "layout", 2)

    for opens in (open_store(url).open, windlass.connect(url).open, work_on(url).apply):
        with pytest.raises(SchemaTooNew) as told:
            await opens()

        assert all(word in str(told.value) for word in ("2", "1", "upgrade"))
        assert not told.value.retryable
    assert (keys_of(url), ask(url, "HGET", meta, "layout")) == ({meta}, "2")


def work_on(url: str) -> Migrator:
    found = migrator(url)
    assert found is not None
    return found


async def test_windlass_migrate_makes_the_layout(url: str) -> None:
    work = work_on(url)

    before, made, after = await work.look(), await work.apply(), await work.look()

    assert [(one.found, one.known, one.pending) for one in (before, made, after)] == [
        (None, 1, (1,)),
        (None, 1, (1,)),
        (1, 1, ()),
    ]
    assert "the server at" in before.place


async def test_the_layout_can_be_made_by_hand(url: str) -> None:
    work = work_on(url)

    ask(url, *work.script(0).split())

    assert work.script(1) == ""
    assert (await work.look()).found == 1
    with pytest.raises(InvalidValue):
        work.script(2)
    async with opened(with_options(url, "create=no")):
        pass


async def test_who_comes_while_there_is_no_server_waits_for_it() -> None:
    with PrivateRedis() as server:
        server.stop()
        store = open_store(server.url)
        opening = asyncio.create_task(store.open())
        await asyncio.to_thread(server.start)

        await opening

        assert await store.stats() == []
        await store.close()


async def test_who_comes_where_there_is_no_server_is_told_at_the_deadline() -> None:
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match=r"nothing listens where the server at 127\.0\.0\.1:1 should be") as told:
        await open_store("redis://127.0.0.1:1/0?timeout=0.5").open()

    assert told.value.retryable
    assert 0.3 < time.monotonic() - began < 5


class Pair:
    """A server and its replica."""

    def __init__(self, master: PrivateRedis, replica: PrivateRedis) -> None:
        self.master = master
        self.replica = replica

    def has(self, url: str) -> bool:
        """Whether the replica has a job of the store at `url`."""
        keys: list[str] = self.replica.ask("KEYS", f"{{{prefix_of(url)}}}|job|*")
        return bool(keys)


@pytest.fixture(scope="module")
def pair(private: PrivateRedis) -> Iterator[Pair]:
    def replicates() -> bool:
        told: list[Any] = replica.ask("ROLE")
        return told[3:4] == ["connected"] and private.ask("WAIT", 1, 10) == 1

    with PrivateRedis(master=private) as replica:
        assert eventually(replicates, PATIENCE)
        yield Pair(private, replica)


async def test_a_write_returns_when_the_replicas_have_it(pair: Pair) -> None:
    url = with_options(pair.master.url, f"wait=1&prefix={new_prefix()}")

    async with opened(url) as store:
        for number in range(20):
            [done] = await store.enqueue([a_job("q", payload=b"%d" % number)])
            assert pair.replica.ask("EXISTS", f"{{{prefix_of(url)}}}|job|{done.id}") == 1


async def test_what_no_replica_has_is_not_told_as_done_by_whoever_repeats_the_call(pair: Pair) -> None:
    url = with_options(pair.master.url, f"prefix={new_prefix()}")
    job = a_job("q")
    async with opened(url), opened(with_options(url, "wait=1&timeout=0.6")) as store:
        os.kill(pair.replica.pid, signal.SIGSTOP)
        try:
            for again in (False, True):
                with pytest.raises(OutcomeUnknown) as told:
                    await store.enqueue([job], request_id="r")
                assert told.value.job_id == job.id
                assert "only 0 of 1 replicas have the write" in str(told.value.__cause__), again
            with pytest.raises(StoreUnavailable, match=r"only 0 of 1 replicas .* lower \?wait=") as refused:
                await store.kv_write(KvWrite(b"k", b"v"))
        finally:
            os.kill(pair.replica.pid, signal.SIGCONT)

        assert refused.value.retryable
        assert (await store.enqueue([job], request_id="r"))[0].created
        assert pair.has(url)
        [stats] = await store.stats("q")
        assert stats.pending == 1


@pytest.mark.parametrize(
    "said",
    [
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
        "ERR WAIT cannot be used with replica instances.",
    ],
)
async def test_a_master_that_steps_back_while_replicas_are_waited_for_has_done_it_all_the_same(
    pair: Pair, said: str
) -> None:
    async with (
        Proxy(pair.master.url) as proxy,
        opened(with_options(proxy.url, f"wait=1&timeout=20&prefix={new_prefix()}")) as store,
    ):
        await store.enqueue([a_job("q"), a_job("q")])
        met = proxy.fail(lambda request: request.name == b"WAIT", said)

        claims = (await store.claim(wanting("q"))).jobs

        [stats] = await store.stats("q")
        assert met.is_set()
        assert (len(claims), stats.running, stats.pending) == (1, 1, 1)


async def test_looks_wait_for_no_replica(url: str) -> None:
    async with opened(url) as store, opened(with_options(url, "wait=1&timeout=0.5&create=no")) as waiting:
        await store.enqueue([a_job("q")])

        assert (await waiting.stats("q"))[0].pending == 1
        with pytest.raises(OutcomeUnknown):
            await waiting.enqueue([a_job("q")])
