"""A server that refuses for a while, for real: calls wait for what passes, tell what does not, and go on after it."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

import pytest
from redis.exceptions import BusyLoadingError, RedisError

from proofs.children import eventually
from tests.redis.asking import connected
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import MINUTE, NONE_KEPT, a_claim, opened, settlement, wanting
from windlass.core.errors import OutcomeUnknown, StoreFull, StoreReadOnly, StoreUnavailable
from windlass.core.requests import KvWrite, RescueRequest, Settled
from windlass.core.retention import Retention
from windlass.core.verdict import ToReleased
from windlass.testing.conformance.given import a_job

PATIENCE: Final = 30.0
SHORT: Final = 0.5
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    conf = {"appendonly": "yes", "busy-reply-threshold": "20", "hz": "100", "save": "3600 1", "rdbcompression": "no"}
    with PrivateRedis(conf=conf) as private:
        yield private


@pytest.fixture
def url(private: PrivateRedis) -> str:
    return with_options(private.url, f"prefix={new_prefix()}")


async def once(true: Callable[[], bool]) -> None:
    """Return when the server is as it should be; where it does not answer, it is not."""

    def is_true() -> bool:
        try:
            return true()
        except RedisError:
            return False

    assert await asyncio.to_thread(eventually, is_true, PATIENCE, 0.005)


async def test_calls_wait_for_a_server_that_loads_its_data(private: PrivateRedis, url: str) -> None:
    async with opened(url) as store:
        held = await a_claim(store, "q")
        private.ask("MSET", *(word for number in range(600) for word in (f"filling {number}", "x" * 50)))
        # into one file, whose loading answers others now and then
        private.ask("BGREWRITEAOF")
        await once(lambda: private.ask("INFO", "persistence")["aof_base_size"] > 30_000)
        await asyncio.to_thread(private.stop)
        slowly = {"key-load-delay": "1000", "loading-process-events-interval-bytes": "1024"}
        private.conf.update(slowly)
        starting = asyncio.create_task(asyncio.to_thread(private.start))
        await once(lambda: refuses(private, "LOADING"))

        answer, [done], _ = await asyncio.gather(
            store.settle([settlement(held)]), store.enqueue([a_job("q")]), store.stats("q")
        )
        async with opened(url) as fresh:
            [stats] = await fresh.stats("q")
        await starting

        assert (answer, done.created) == ([Settled.DONE], True)
        assert (stats.succeeded, stats.pending) == (1, 1)
        for name in slowly:
            private.conf.pop(name)
        private.ask("FLUSHALL")


def refuses(private: PrivateRedis, word: str) -> bool:
    """Return whether the server answers with an error that begins like this."""
    try:
        private.ask("GET", "any")
    except BusyLoadingError:
        return word == "LOADING"
    except RedisError as error:
        return str(error).startswith(word)
    return False


async def test_calls_wait_while_a_script_of_somebody_else_runs_and_never_kill_it(
    private: PrivateRedis, url: str
) -> None:
    async with opened(url) as store, busy(private) as script:
        calls = asyncio.gather(store.enqueue([a_job("q")]), store.stats("q"), store.kv_write(KvWrite(b"k", b"v")))
        await once(lambda: refuses(private, "BUSY"))
        assert not calls.done()
        await script.kill()
        [[done], _, written] = await calls

    assert (done.created, written) == (True, True)
    assert script.kills == 1


class busy:  # noqa: N801 - it reads well after `async with`
    """A server whose script never ends until it is killed; counts who has told it to be."""

    def __init__(self, server: PrivateRedis) -> None:
        self._server = server
        self._thread = threading.Thread(target=self._loop)
        self._before = kills(server)

    async def kill(self) -> None:
        await asyncio.to_thread(self._server.ask, "SCRIPT", "KILL")

    @property
    def kills(self) -> int:
        return kills(self._server) - self._before

    async def __aenter__(self) -> Self:
        self._thread.start()
        await once(lambda: refuses(self._server, "BUSY"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self.kill()
        await asyncio.to_thread(self._thread.join, PATIENCE)
        assert not self._thread.is_alive()

    def _loop(self) -> None:
        with closing(connected(self._server.url)) as client, pytest.raises(RedisError, match="killed"):
            client.execute_command("EVAL", "while true do end", 0)


def kills(private: PrivateRedis) -> int:
    """Return how often a server was told to end a script."""
    return int(private.ask("INFO", "commandstats").get("cmdstat_script|kill", {"calls": 0})["calls"])


async def test_a_script_that_does_not_end_is_told_at_the_deadline_and_nothing_is_in_doubt(
    private: PrivateRedis, url: str
) -> None:
    async with opened(url):
        pass
    async with opened(with_options(url, f"timeout={SHORT}")) as store, busy(private) as script:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="busy running a script") as told:
            await store.enqueue([a_job("q")])
        took = time.monotonic() - began
        await script.kill()

    assert told.value.retryable
    assert took < SHORT + SPARE
    assert script.kills == 1


async def test_a_full_server_takes_nothing_new_and_lets_what_is_there_come_to_an_end(
    private: PrivateRedis, url: str
) -> None:
    async with opened(url) as store:
        kept = [a_job("q", payload=b"%d" % number) for number in range(6)]
        await store.enqueue(kept)
        first, second, third = (await store.claim(wanting("q", limit=3))).jobs
        await store.claim(wanting("q", lease=timedelta(0)))
        private.ask("CONFIG", "SET", "maxmemory", "1mb")
        try:
            for refused in (
                store.enqueue([a_job("q")]),
                store.enqueue([a_job("q"), a_job("r")], request_id="r"),
                store.kv_write(KvWrite(b"k", b"v")),
            ):
                with pytest.raises(StoreFull, match="no memory left: raise its maxmemory") as told:
                    await refused
                assert told.value.retryable

            answers = [
                await store.settle([settlement(first)]),
                await store.settle([settlement(second, keep=False)]),
                await store.settle([settlement(third, ToReleased())]),
            ]
            [fourth] = (await store.claim(wanting("q"))).jobs
            renewed = await store.renew([(fourth.job.id, fourth.token)], MINUTE)
            rescued = await store.rescue(RescueRequest(), Retention())
            pruned = await store.prune(Retention(NONE_KEPT), limit=10)
        finally:
            private.ask("CONFIG", "SET", "maxmemory", "0")

        assert answers == [[Settled.DONE]] * 3
        assert (fourth.job.id, renewed[0] is not None, len(rescued), pruned) == (third.job.id, True, 1, 1)
        await store.enqueue([a_job("q")])
        claims = (await store.claim(wanting("q", limit=10))).jobs
        await store.settle([settlement(claim) for claim in (fourth, *claims)])
        [stats] = await store.stats("q")
        assert (stats.totals.enqueued, stats.totals.succeeded) == (7, 7)


async def test_calls_wait_for_a_server_that_is_a_replica_for_a_while(private: PrivateRedis, url: str) -> None:
    async with opened(url) as store:
        private.ask("REPLICAOF", "127.0.0.1", 1)
        call = asyncio.ensure_future(store.enqueue([a_job("q")]))
        await once(lambda: "errorstat_READONLY" in private.ask("INFO", "errorstats"))
        private.ask("REPLICAOF", "NO", "ONE")

        [done] = await call

    assert done.created


async def test_a_server_that_stays_a_replica_is_told_at_the_deadline(private: PrivateRedis, url: str) -> None:
    async with opened(url):
        pass
    async with opened(with_options(url, f"timeout={SHORT}")) as store:
        private.ask("REPLICAOF", "127.0.0.1", 1)
        try:
            with pytest.raises(StoreReadOnly, match="name the master in the URL") as told:
                await store.enqueue([a_job("q")])
        finally:
            private.ask("REPLICAOF", "NO", "ONE")

    assert told.value.retryable


async def test_a_server_that_cannot_save_is_told_at_once_and_works_again_when_it_can(
    private: PrivateRedis, url: str
) -> None:
    snapshot = private.folder / "dump.rdb"
    async with opened(url) as store:
        snapshot.unlink(missing_ok=True)
        snapshot.mkdir()
        (snapshot / "in the way").touch()
        private.ask("BGSAVE")
        await once(lambda: bool(private.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "err"))
        began = time.monotonic()
        with pytest.raises(StoreReadOnly, match="cannot save them: MISCONF") as told:
            await store.enqueue([a_job("q")])
        took = time.monotonic() - began
        shutil.rmtree(snapshot)
        private.ask("BGSAVE")
        await once(lambda: bool(private.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "ok"))

        assert (await store.enqueue([a_job("q")]))[0].created
        assert (await store.stats("q"))[0].pending == 1

    assert told.value.retryable
    assert took < PATIENCE / 4


async def test_calls_wait_for_a_server_that_has_too_many_clients(private: PrivateRedis, url: str) -> None:
    async with opened(url) as store:
        used = private.ask("INFO", "clients")["connected_clients"]
        # the connection that asks is one of them, and gone by now
        private.ask("CONFIG", "SET", "maxclients", used)
        with closing(connected(private.url)) as one_more:
            one_more.ping()
            two = asyncio.gather(store.enqueue([a_job("q")]), store.stats("q"))
            async with AsyncExitStack() as stack:
                with pytest.raises(StoreUnavailable, match="has too many clients"):
                    await stack.enter_async_context(opened(with_options(url, f"timeout={SHORT}")))
            one_more.execute_command("CONFIG", "SET", "maxclients", 10_000)
            [[done], _] = await two

    assert done.created


async def test_a_script_that_was_cut_off_in_the_middle_leaves_its_call_in_doubt(
    private: PrivateRedis, url: str
) -> None:
    """What it had written stays: the job is there, but nobody was told."""
    private.ask("ACL", "SETUSER", "mute", "reset", "on", ">pw", "~*", "+@all")
    job = a_job("q")
    async with opened(url.replace("redis://", "redis://mute:pw@")) as store:
        with pytest.raises(OutcomeUnknown) as raised:
            await store.enqueue([job])

        assert raised.value.job_id == job.id
        assert "refused the user" in str(raised.value.__cause__)
        assert await store.enqueue([job]) == [(job.id, False)]
    private.ask("ACL", "DELUSER", "mute")
