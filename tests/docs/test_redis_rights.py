"""The rights that the page on Redis gives to a user: they are enough, and each of them is needed."""

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.exceptions import NoPermissionError

import windlass
from proofs.children import eventually
from tests.docs.pages import section
from tests.redis.private import PrivateRedis
from tests.redis.process import Process
from tests.redis.sentinels import Sentinels
from windlass import Client, NewJob, Unique, WindlassError
from windlass.client.checkup import checkup
from windlass.core.looks import AuditEntry
from windlass.stores import redis
from windlass.stores.redis.listener import Listener
from windlass.testing.conformance.given import a_job

PAGE = section("howto/run-on-redis.md", "Give the user only what it needs")
SETUSER = [shlex.split(words) for words in re.findall(r"^redis-cli ACL SETUSER windlass (.*)$", PAGE, re.MULTILINE)]
RULES = [rule for words in SETUSER for rule in words]
COMMANDS = [rule[1:] for rule in RULES if rule.startswith("+")]
OF_CONNECTIONS = {"eval", "evalsha", "info", "subscribe", "ping", "client|setname"}
"""What is asked for outside of scripts."""
MORE = {
    what: [word.strip("'") for word in re.findall(r"`([^`]+)`", words.replace("\\|", "|"))]
    for what, words in re.findall(r"^\| (.+) \| (.*) \|$", PAGE.partition("|---|---|\n")[2], re.MULTILINE)
}
SPREAD = MORE["`?spread=queues`"]
NAMES_KEYS = MORE["an error that names the key whose value has the wrong type"]
SCRIPTS = Path(redis.__file__).parent / "scripts"
NAMED = re.compile(r"'([A-Z]+)'")
"""A word in quotes in a script: a command, or an option of a command."""
HARMLESS = {"config|get"}
"""What may be refused."""


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def user(server: PrivateRedis) -> str:
    """The URL of a user as the page makes it, on a server where nothing is."""
    give(server, *RULES)
    for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("ACL", "LOG", "RESET"), ("CONFIG", "RESETSTAT")):
        server.ask(*words)
    return server.url_for("windlass", "secret")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens asks soon whether the server is still there."""
    monkeypatch.setattr(Listener, "check_after", 0.05)


def give(server: PrivateRedis, *rules: str) -> None:
    server.ask("ACL", "SETUSER", "windlass", *rules)


def refused(server: Process) -> set[str]:
    """Return the commands, keys and channels that were refused."""
    return {dict(zip(entry[::2], entry[1::2], strict=True))["object"] for entry in server.ask("ACL", "LOG")}


def used(server: PrivateRedis) -> set[str]:
    """Return the commands that were run."""
    return {name.removeprefix("cmdstat_") for name in server.ask("INFO", "commandstats")}


async def do_everything(url: str, until: Callable[[], bool]) -> None:
    """Do what clients, servers and people do, and listen until `until()`, at most for some seconds."""
    async with windlass.connect(url, services=True) as client:
        waiting = asyncio.create_task(client.claim("nothing", wait=60))
        try:
            await do_jobs(client)
            await do_the_rest(client)
            assert await asyncio.to_thread(eventually, until, 10)
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])


async def do_jobs(client: Client) -> None:
    """Let jobs go all ways."""
    await client.enqueue("email", b"first")
    first = await client.claim("email", wait=60)
    assert first is not None
    await client.renew(first)
    [running] = await client.store.get([first.job.id])
    assert running is not None
    assert running.lease_expires_at is not None
    await client.ack(first, result=b"done")
    await client.enqueue_many([NewJob("email", delay=0.001), NewJob("email", delay=3600)])
    await client.enqueue("email", unique=Unique("a", until="finished"))
    await client.enqueue("email", unique=Unique("b", until=timedelta(minutes=1)))
    [claim] = await client.claim_many("email", wait=60)
    await client.nack(claim, "not now", delay=3600)
    await client.cancel(claim.job.id)
    await client.retry(claim.job.id)
    await client.pause("email")
    assert await client.claim("email") is None
    await client.resume("email")
    await client.promote()
    await client.rescue(force=True)
    await client.prune(keep_succeeded=0, keep_max=1)


async def do_the_rest(client: Client) -> None:
    """Keep values, hold locks, fire schedules, look."""
    async with client.lock("l", 5):
        await client.kv.put("k", b"v")
        assert await client.kv.scan() == [(b"k", b"v")]
        await client.kv.delete("k")
    await client.schedules.put("s", 60, NewJob("email"))
    await client.schedules.run_now("s")
    await client.schedules.remove("s")
    await client.store.write_audit([AuditEntry(datetime.now(UTC), "ada", "retry", "job", {})])
    [job, *_] = await client.jobs()
    assert await client.get(job.id) is not None
    # one that waits: those ahead of it are counted
    [waiting] = await client.store.enqueue([a_job("email")])
    place = await client.store.place(waiting.id)
    assert place is not None
    assert place.ahead is not None
    assert (await client.stats("email")).totals.enqueued > 0
    assert [each for each in await checkup(client.store) if each.level == "error"] == []


def test_the_page_has_every_command_that_a_script_calls(server: PrivateRedis) -> None:
    named = {name.lower() for script in SCRIPTS.rglob("*.lua") for name in NAMED.findall(script.read_text())}
    called = named & {*server.ask("COMMAND LIST")}

    of_some = {rule[1:] for rule in (*SPREAD, *NAMES_KEYS) if rule.startswith("+")}
    assert called | OF_CONNECTIONS == {*COMMANDS, *of_some}


async def test_the_rights_of_the_page_are_enough(server: PrivateRedis, user: str) -> None:
    await do_everything(user, lambda: {*COMMANDS} <= used(server))

    assert refused(server) <= HARMLESS


@pytest.mark.parametrize("command", COMMANDS)
async def test_each_command_of_the_page_is_needed(server: PrivateRedis, user: str, command: str) -> None:
    give(server, f"-{command}")

    with suppress(WindlassError, NoPermissionError):
        await do_everything(user, lambda: command in refused(server))

    assert command in refused(server)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule[0] in "~&"])
async def test_the_keys_and_the_channel_of_the_page_are_needed(server: PrivateRedis, user: str, rule: str) -> None:
    give(server, "resetkeys" if rule[0] == "~" else "resetchannels")

    with suppress(WindlassError):
        await do_everything(user, lambda: not refused(server) <= HARMLESS)

    assert not refused(server) <= HARMLESS


async def test_another_store_is_out_of_reach(user: str) -> None:
    with pytest.raises(windlass.StoreUnavailable):
        await windlass.connect(f"{user}?prefix=windlass2").open()


@pytest.mark.parametrize("without", [None, *SPREAD])
async def test_queues_that_are_spread_need_what_the_page_says(
    server: PrivateRedis, user: str, without: str | None
) -> None:
    give(server, *(rule for rule in SPREAD if rule != without))

    with suppress(WindlassError):
        await do_everything(f"{user}?spread=queues", lambda: "ping" in used(server))

    assert (refused(server) <= HARMLESS) is (without is None)


async def test_another_database_needs_what_the_page_says(server: PrivateRedis, user: str) -> None:
    elsewhere = user.removesuffix("/0") + "/3"
    with pytest.raises(windlass.StoreUnavailable, match="select"):
        await windlass.connect(elsewhere).open()

    give(server, *MORE["a database other than 0"])

    async with windlass.connect(elsewhere) as client:
        assert await client.stats() is not None


async def test_the_doctor_sees_more_with_what_the_page_says(server: PrivateRedis, user: str) -> None:
    async with windlass.connect(user) as client:
        server.ask("CONFIG", "SET", "appendonly", "yes")
        before = {finding.name: finding.message for finding in await client.store.check()}

        give(server, *MORE["`windlass doctor` and the line at the start, to see `appendfsync`"])

        after = {finding.name: finding.message for finding in await client.store.check()}
    server.ask("CONFIG", "SET", "appendonly", "no")
    assert "does not tell" in before["durability"]
    assert after["durability"].startswith("appendfsync everysec")


async def test_an_error_names_a_broken_key_with_what_the_page_says(server: PrivateRedis, user: str) -> None:
    async with windlass.connect(user) as client:
        await client.enqueue("email", b"hello")
        server.ask("DEL", "{windlass}|due|email")
        server.ask("SET", "{windlass}|due|email", "no set")
        with pytest.raises(windlass.StoreCorrupt) as before:
            await client.claim("email")

        give(server, *NAMES_KEYS)

        with pytest.raises(windlass.StoreCorrupt) as after:
            await client.claim("email")
    assert "due|email" not in str(before.value)
    assert "due|email is a string instead of a zset" in str(after.value)


async def test_waiting_for_replicas_needs_what_the_page_says(server: PrivateRedis, user: str) -> None:
    waits = f"{user}?wait=1&timeout=1"
    with pytest.raises(windlass.StoreUnavailable, match="wait"):
        await windlass.connect(waits).open()

    give(server, *MORE["`?wait=`"])

    async with windlass.connect(waits) as client:
        with pytest.raises(windlass.OutcomeUnknown) as told:
            await client.enqueue("email", b"hello")
    assert "0 of 1 replicas have the write" in str(told.value.__cause__)


@pytest.mark.slow
async def test_what_the_page_says_is_enough_for_the_user_of_the_sentinels() -> None:
    with Sentinels() as there:
        for sentinel in there.sentinels:
            sentinel.ask(
                "ACL", "SETUSER", "finder", "reset", "on", ">secret", *MORE["the user of the Sentinels, there"]
            )

        async with windlass.connect(f"{there.url}?sentinel_user=finder&sentinel_password=secret") as client:
            await client.enqueue("email", b"hello")

        assert set().union(*map(refused, there.sentinels)) <= HARMLESS


def test_every_row_of_what_more_is_needed_is_tried_here() -> None:
    assert [*MORE] == [
        "a database other than 0",
        "`?wait=`",
        "`?spread=queues`",
        "`windlass doctor` and the line at the start, to see `appendfsync`",
        "an error that names the key whose value has the wrong type",
        "the user of the Sentinels, there",
    ]
