"""Settings of queues: both layers are kept, and the column `paused` holds, which earlier code reads and writes."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windlass import Client
from windlass.core.commands import SetQueueSettings
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job, wanting

PAUSED = StoredSettings(paused=True)
NOT_PAUSED = StoredSettings(paused=False)


@pytest.fixture
def store(client: Client) -> Store:
    return client.store


@pytest.fixture
def connection(client: Client, path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001 - whose store makes the file
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def row(connection: sqlite3.Connection) -> tuple[object, object, int]:
    """Return both layers and the revision of the only queue."""
    [(declared, override, revision)] = connection.execute("select declared, override, revision from windlass_queue")
    return json.loads(declared or "{}"), json.loads(override or "{}"), revision


def pause_as_earlier_code(connection: sqlite3.Connection, *, paused: bool) -> None:
    statement = (
        "insert into windlass_count (minute, queue, kind, paused) values (9223372036854775807, 'q', '', ?)"
        " on conflict (minute, queue, kind) do update set paused = excluded.paused"
    )
    connection.execute(statement, (paused,))


async def settings_of(store: Store, queue: str) -> StoredSettings:
    return (await store.ask(GetQueueSettings([queue]))).get(queue, NO_SETTINGS)


async def is_claimed_from(store: Store, queue: str) -> bool:
    await store.enqueue([a_job(queue)])
    return bool((await store.claim(wanting(queue))).jobs)


async def test_a_revision_counts_the_changes_of_a_queue(store: Store, connection: sqlite3.Connection) -> None:
    for paused in (True, True, False):
        await store.set_paused("q", paused=paused)

    assert row(connection) == ({}, {"paused": False}, 2)


async def test_an_override_holds_in_place_of_what_is_declared(store: Store, connection: sqlite3.Connection) -> None:
    await store.do(SetQueueSettings("q", PAUSED, "declared"))
    assert not await is_claimed_from(store, "q")

    await store.do(SetQueueSettings("q", NOT_PAUSED, "override"))

    assert await is_claimed_from(store, "q")
    assert row(connection) == ({"paused": True}, {"paused": False}, 2)


async def test_settings_of_a_newer_release_stay(store: Store, connection: sqlite3.Connection) -> None:
    newer = '{"limit": 7, "weights": {"gold": []}}'
    connection.execute("insert into windlass_queue values ('q', '', ?, 41)", (newer,))

    await store.enqueue([a_job("q")])
    await store.set_paused("q", paused=True)

    assert row(connection) == ({}, {"limit": 7, "paused": True, "weights": {"gold": []}}, 42)


async def test_a_pause_by_earlier_code_holds(store: Store, connection: sqlite3.Connection) -> None:
    pause_as_earlier_code(connection, paused=True)

    assert await settings_of(store, "q") == PAUSED
    assert not await is_claimed_from(store, "q")
    await store.do(SetQueueSettings("q", NO_SETTINGS, "declared"))
    assert not await is_claimed_from(store, "q")
    await store.set_paused("q", paused=False)
    assert await is_claimed_from(store, "q")


async def test_a_pause_that_earlier_code_has_ended_does_not_come_back(
    store: Store, connection: sqlite3.Connection
) -> None:
    await store.set_paused("q", paused=True)
    pause_as_earlier_code(connection, paused=False)

    assert await settings_of(store, "q") == NOT_PAUSED
    await store.do(SetQueueSettings("q", PAUSED, "declared"))

    assert await is_claimed_from(store, "q")
    assert row(connection)[:2] == ({"paused": True}, {"paused": False})


@pytest.mark.parametrize(
    "queue, text", [("cut", '{"paused"'), ("list", "[]"), ("other", '{"paused": 7}'), ("bytes", b"\xff")]
)
async def test_a_damaged_layer_stops_no_claim_and_is_named_in_the_log(
    store: Store, connection: sqlite3.Connection, caplog: pytest.LogCaptureFixture, queue: str, text: str | bytes
) -> None:
    await store.set_paused(queue, paused=False)
    connection.execute("update windlass_queue set override = cast(? as text)", (text,))

    assert await is_claimed_from(store, queue)
    assert await settings_of(store, queue) == NO_SETTINGS
    [stats] = await store.stats()
    assert not stats.paused
    assert f"a layer of the settings of queue {queue!r} is damaged and left out: override" in caplog.text
    await store.set_paused(queue, paused=True)
    assert await settings_of(store, queue) == PAUSED
    assert row(connection)[:2] == ({}, {"paused": True})
