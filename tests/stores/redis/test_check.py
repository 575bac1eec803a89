"""What `doctor` and the log say of a server: first of all what it keeps when it is killed."""

import asyncio
import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, NamedTuple

import pytest

import windlass
from proofs.children import eventually
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import opened
from tests.stores.redis.saying import LAYOUT, NOTHING, a_server_that_says, bulk
from windlass.core.looks import Finding
from windlass.core.retention import Retention
from windlass.core.topics import queue_topic
from windlass.stores.redis.scripts import script
from windlass.stores.redis.store import KEEPS_AT_MOST
from windlass.testing.conformance.given import a_job

MANAGED: Final = "on >pw ~* &* +@all -config -debug -slaveof -replicaof"


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    conf = {"appendonly": "yes", "appendfsync": "always"}
    with PrivateRedis(conf=conf, users={"managed": MANAGED}) as private:
        yield private


@pytest.fixture
def url(private: PrivateRedis) -> str:
    return with_options(private.url, f"prefix={new_prefix()}")


@contextmanager
def set_to(private: PrivateRedis, name: str, value: str) -> Generator[None]:
    before = private.ask("CONFIG", "GET", name)[1]
    private.ask("CONFIG", "SET", name, value)
    try:
        yield
    finally:
        private.ask("CONFIG", "SET", name, before)


async def found(url: str) -> dict[str, Finding]:
    async with opened(url) as store:
        findings = await store.check()
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


async def test_nothing_is_wrong_with_a_server_that_keeps_everything(url: str) -> None:
    findings = await found(url)

    assert [finding for finding in findings.values() if finding.level != "ok" or finding.advice] == []
    assert findings.keys() == {"server", "layout", "durability", "memory", "replicas"}
    assert findings["layout"].message == "version 1 of 1"
    assert findings["durability"].message.startswith("appendfsync always: every write is on disk")
    assert findings["memory"].message.endswith("used without a limit, policy noeviction")
    assert findings["server"].message.startswith(("Valkey ", "Redis "))
    assert findings["server"].message.endswith("role master")


class Told(NamedTuple):
    """What is told of one setting."""

    level: str
    said: str
    advice: str


@pytest.mark.parametrize(
    "setting, value, told",
    [
        ("appendonly", "no", Told("warning", "appendonly is off", "set appendonly yes")),
        ("appendfsync", "everysec", Told("ok", "when its machine stops, up to the last second", "always")),
        ("appendfsync", "everysec", Told("ok", "nothing is lost when the server is killed, unless", "always")),
        ("no-appendfsync-on-rewrite", "yes", Told("warning", "nothing is synced", "no-appendfsync-on-rewrite no")),
        ("appendfsync", "no", Told("warning", "up to half a minute is lost", "always")),
        ("maxmemory-policy", "allkeys-lru", Told("warning", "forgets jobs", "set maxmemory-policy noeviction")),
        ("maxmemory-policy", "volatile-ttl", Told("warning", "forgets locks", "set maxmemory-policy noeviction")),
        ("maxmemory", "1mb", Told("warning", "MiB of 1 MiB are used: soon no job", "raise maxmemory")),
    ],
)
async def test_a_setting_that_loses_jobs_is_told_of(
    private: PrivateRedis, url: str, setting: str, value: str, told: Told
) -> None:
    async with opened(url):
        pass
    with set_to(private, setting, value):
        finding = (await found(with_options(url, "evicting=allowed")))[
            "memory" if setting.startswith("maxmemory") else "durability"
        ]

    assert finding.level == told.level
    assert told.said in finding.message
    assert told.advice in (finding.advice or "")


async def test_how_much_memory_may_be_used_is_said(private: PrivateRedis, url: str) -> None:
    with set_to(private, "maxmemory", "1gb"):
        finding = (await found(url))["memory"]

    assert finding.level == "ok"
    assert finding.message.endswith("MiB used of 1,024 MiB, policy noeviction")


async def test_a_server_that_hides_its_settings_is_taken_at_its_word(private: PrivateRedis, url: str) -> None:
    managed = private.url_for("managed", "pw")
    options = url.partition("?")[2]

    findings = await found(f"{managed}?{options}")

    assert {finding.level for finding in findings.values()} == {"ok"}
    assert findings["durability"].message == "appendonly is on; how often it is synced the server does not tell"


def telling(**told: str) -> dict[bytes, bytes]:
    """Return how a server answers that tells this of itself, and nothing else."""
    info = "".join(f"{name}:{value}\r\n" for name, value in {"redis_version": "7.4.0", **told}.items())
    not_moved = {script("moved").digest.encode(): NOTHING}
    return {b"INFO": bulk(info.encode()), b"EVALSHA": LAYOUT, b"CONFIG": b"*0\r\n", **not_moved}


async def test_what_nobody_tells_is_not_guessed() -> None:
    async with a_server_that_says(telling()) as url:
        findings = await found(url)

    assert {name: finding.level for name, finding in findings.items()} == {
        "server": "ok",
        "layout": "ok",
        "durability": "warning",
        "memory": "ok",
        "replicas": "ok",
    }
    assert findings["durability"].message == "the server does not tell whether it keeps jobs when it ends"
    assert findings["server"].message.startswith("Redis 7.4.0: the server at ")


@pytest.mark.parametrize(
    "told, name, said, advice",
    [
        ({"role": "slave"}, "server", "role slave", "name the master in the URL"),
        ({"aof_enabled": "1", "aof_last_write_status": "err"}, "durability", "could not write", "look at its disk"),
    ],
)
async def test_a_server_that_takes_no_writes_is_told_of(
    told: dict[str, str], name: str, said: str, advice: str
) -> None:
    async with a_server_that_says(telling(**told)) as url:
        finding = (await found(url))[name]

    assert (finding.level, finding.name) == ("error", name)
    assert said in finding.message
    assert advice in (finding.advice or "")


async def test_replicas_that_every_write_waits_for_must_be_there(private: PrivateRedis, url: str) -> None:
    waits = with_options(url, "wait=1&timeout=1")
    async with opened(url):
        pass

    missing = (await found(waits))["replicas"]
    with PrivateRedis(master=private) as replica:
        assert eventually(lambda: replica.ask("ROLE")[3] == "connected")
        there = (await found(waits))["replicas"]

    assert (missing.level, missing.message) == (
        "error",
        "?wait=1 waits for more replicas than the 0 that are connected",
    )
    assert (there.level, there.message) == ("ok", "1 connected, 1 of which every write waits for")


async def test_whether_news_is_heard_is_said(url: str) -> None:
    async with opened(url) as store:
        quiet = {finding.name for finding in await store.check()}
        stop = store.listen([queue_topic("q")], lambda: None)
        await store.enqueue([a_job("q")])
        told: list[Finding] = []
        async with asyncio.timeout(20):
            while not told or told[0].level != "ok":
                told = [finding for finding in await store.check() if finding.name == "news"]
        stop()

    assert "news" not in quiet
    assert told[0].message == "new jobs are heard of at once"


async def test_a_server_that_began_to_forget_jobs_is_an_error_for_whoever_did_not_insist(
    private: PrivateRedis, url: str
) -> None:
    async with opened(url) as store:
        with set_to(private, "maxmemory-policy", "allkeys-lru"):
            [finding] = [finding for finding in await store.check() if finding.name == "memory"]

    assert (finding.level, finding.advice) == ("error", "set maxmemory-policy noeviction")


@pytest.mark.parametrize(
    "setting, value, said",
    [
        ("appendfsync", "always", "INFO appendfsync always: every write is on disk before it is answered"),
        ("appendfsync", "everysec", "INFO appendfsync everysec: nothing is lost when the server is killed, unless"),
        ("appendfsync", "no", "WARNING appendfsync no: the system writes to disk when it likes"),
        ("appendonly", "no", "WARNING appendonly is off: when the server ends, all jobs since its last snapshot"),
        ("maxmemory-policy", "volatile-lru", "WARNING when memory is full the server forgets locks"),
        ("maxmemory-policy", "allkeys-lru", "WARNING when memory is full the server forgets jobs: set maxmemory-"),
    ],
)
async def test_who_begins_is_told_once_in_one_line_what_the_server_keeps(
    request: pytest.FixtureRequest, private: PrivateRedis, setting: str, value: str, said: str
) -> None:
    url: str = request.getfixturevalue("url")
    caplog: pytest.LogCaptureFixture = request.getfixturevalue("caplog")
    caplog.set_level(logging.INFO, "windlass")
    with set_to(private, setting, value):
        for _ in range(2):
            async with windlass.connect(with_options(url, "evicting=allowed")) as client:
                await client.stats()

    [told] = [record for record in caplog.records if record.name == "windlass.durability"]
    level, _, words = said.partition(" ")
    assert told.levelname == level
    assert told.getMessage().startswith(f"the server at 127.0.0.1:{private.port}, prefix ")
    assert words in told.getMessage()


async def test_who_may_not_see_the_settings_is_told_what_can_be_seen(
    private: PrivateRedis, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass")
    async with opened(f"{private.url_for('managed', 'pw')}?{url.partition('?')[2]}"):
        pass
    async with a_server_that_says(telling()) as hidden, opened(hidden):
        pass

    told = [(record.levelname, record.getMessage()) for record in caplog.records if "windlass" in record.name]
    assert [level for level, _ in told] == ["INFO", "INFO"]
    assert told[0][1].endswith("appendonly is on; how often it is synced the server does not tell")
    assert "the server does not tell whether it keeps jobs when it ends" in told[1][1]


async def test_a_store_in_memory_keeps_at_most_a_hundred_thousand_of_each_end_unless_told_otherwise(url: str) -> None:
    async with windlass.connect(url) as client, windlass.connect(url, keep_max=None) as all_kept:
        assert (KEEPS_AT_MOST, client.settings.retention.most) == (100_000, 100_000)
        assert all_kept.settings.retention == Retention(all_kept.settings.default.keep)
    async with windlass.connect(url, keep_max=2, keep_succeeded=timedelta(days=1)) as client:
        for _ in range(5):
            await client.enqueue("q", b"")
            claim = await client.claim("q")
            assert claim is not None
            await client.ack(claim)
        await client.store.prune(client.settings.retention, limit=100)

        assert (await client.stats("q")).succeeded == 2
