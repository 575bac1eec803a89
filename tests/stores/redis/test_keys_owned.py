"""After every move each key has an owner, with whom it goes, or expires: none stays that nobody will delete."""

import re
from datetime import UTC, datetime

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of
from tests.stores.redis.calls import MINUTE, NONE_KEPT, NOW, WRITES, Scenario, a_claim, opened, settlement
from tests.stores.redis.owners import KINDS, kind_of, strays
from windlass.core.job import Failure, Note
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import KvWrite
from windlass.core.retention import Retention
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.stores.redis import keys as layout
from windlass.testing.conformance.given import a_job, a_schedule


def test_the_layout_names_every_kind_of_key_and_no_others() -> None:
    named = re.findall(r"^ {4}([a-z][a-z_|A-Z, ]*?) {2,}", layout.__doc__ or "", re.MULTILINE)

    assert {kind_of(name) for names in named for name in names.split(", ")} == KINDS


@pytest.mark.parametrize("spread", ["", "&spread=queues"], ids=["one tag", "spread"])
@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_every_key_has_an_owner_or_expires_after_any_move(url: str, scenario: Scenario, spread: str) -> None:
    async with opened(f"{url}{spread}") as store:
        call = await scenario(store, "name")
        before = strays(url)

        await call(store)

        assert (before, strays(url)) == ([], [])


async def fill(store: Store) -> str:
    """Let there be a key of every sort; return the id of a job that is dead."""
    dead = await a_claim(store, "q", max_attempts=1)
    await store.note([Note(dead.job.id, dead.token, lines=[("info", "x")])])
    await store.settle([settlement(dead, ToDead(Failure("no")))], request_id="r")
    await a_claim(store, "q", unique=Unique("k", until="finished"))
    await store.enqueue([a_job("q", kind="a"), a_job("q", delay=MINUTE)])
    await store.write_schedule(a_schedule("s", NOW), expected=None)
    await store.beat(ServerRecord("s#1", "s", "host", 1, "1.0", NOW, NOW))
    await store.kv_write(KvWrite(b"k", b"v"))
    await store.lock("l", "me", MINUTE)
    await store.write_audit([AuditEntry(NOW, "me", "retry", "x", {})])
    await store.set_paused("q", paused=True)
    await store.write_timings([TimingCount(datetime.now(UTC), "q", "", "ran", 0, 1)])
    await store.enqueue([a_job("q", unique=Unique("t", until=MINUTE))])
    await store.unpack(Parcel("move", "q", 1, Packed((), ())))
    await store.set_moved(Moved("sqlite:///elsewhere.db", "move"))
    return dead.job.id


@pytest.mark.parametrize(
    "command, said",
    [
        ("DEL job|{dead}", r"history\|.*: its job is gone"),
        ("DEL job|{dead}", r"log\|.*: its job is gone"),
        ("DEL job|{dead}", r"jobs\|q: its job .* is gone"),
        ("DEL job|{dead}", r"ended\|q\|dead: its job .* is gone"),
        ("DEL dead|q", r"it is dead and does not stand in dead\|q"),
        ("DEL leased|q", r"it is running and does not stand in leased\|q"),
        ("DEL due|q", r"it is scheduled and does not stand in due\|q"),
        ("DEL ready|q|a", r"it is pending and does not stand in ready\|q\|a"),
        ("DEL ready|q|a", r"kinds\|q: there is no line of 'a'"),
        ("DEL kinds|q", "its kind is not known to the queue"),
        ("HSET job|{dead} state running", r"ended\|q\|dead: its job .* is running"),
        ("PERSIST receipt|settle:r", r"receipt\|settle:r: it never expires"),
        ("PERSIST lock|l", r"lock\|l: it never expires"),
        ("PERSIST timed", "timed: it never expires"),
        ("DEL unpacked", "unpacked_at: of"),
        ("DEL hold|queue||q|t", "timed: of"),
        ("HDEL kv k", "kv_keys: of"),
        ("DEL schedules", "schedules: of"),
        ("DEL schedule|s", "schedules_due: of"),
        ("HDEL servers s#1", "servers_seen: of"),
        ("DEL queues", "queues: of"),
        ("SET unheard_of 1", "the layout knows no such key"),
    ],
)
async def test_a_key_without_an_owner_is_noticed(url: str, store: Store, command: str, said: str) -> None:
    dead = await fill(store)
    assert {kind_of(key.partition("}|")[2]) for key in keys_of(url)} == KINDS - {"queue_numbers", "schedules_at"}
    assert strays(url) == []
    name, key, *words = command.format(dead=dead).split()

    ask(url, name, f"{{{prefix_of(url)}}}|{key}", *words)

    assert any(re.search(said, stray) for stray in strays(url)), strays(url)


async def test_nothing_is_left_of_a_finished_job_that_the_server_forgot_once_it_is_pruned(
    url: str, store: Store
) -> None:
    dead = await fill(store)
    ask(url, "DEL", f"{{{prefix_of(url)}}}|job|{dead}")

    await store.prune(Retention(NONE_KEPT), limit=10)

    assert strays(url) == []
