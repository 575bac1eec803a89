"""The settings of a queue: one row for each, read by every claim, of which no damage stops a claim or a page."""

import json
from collections.abc import AsyncIterator
from typing import Final, LiteralString

import asyncpg
import pytest

from tests.stores.postgres.migrating import bring_up, connected, options_of, rows
from tests.stores.postgres.next_migrations import up_to
from tests.stores.postgres.racing import connection_to, opened
from windlass.core.commands import SetQueueSettings
from windlass.core.errors import SchemaTooNew
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, Layer, StoredSettings
from windlass.core.requests import ClaimRequest
from windlass.core.store import Store
from windlass.stores.postgres.migrate import OURS, prepare
from windlass.testing.conformance.given import MINUTE, a_job

PAUSED, RESUMED = StoredSettings(paused=True), StoredSettings(paused=False)
KEPT: Final[LiteralString] = "select declared::text, override::text, revision from {}.windlass_queue where queue = 'q'"
DAMAGED: Final = ["5", '"text"', "null", "[]", '[{"paused": true}]', '{"paused": 1}', '{"paused": "true"}']
BEFORE_SETTINGS: Final = 3
"""The version of the schema in which a pause was a column."""


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


async def claimed(store: Store, *, by_priority: bool = False) -> int:
    return len((await store.claim(ClaimRequest(["q"], 1, MINUTE, by_priority=by_priority))).jobs)


async def damage_found(store: Store) -> str:
    """Return what the check says of settings."""
    return " ".join(finding.message for finding in await store.check() if finding.name == "settings")


async def test_each_layer_is_kept_with_the_number_of_changes(store: Store, schema: str) -> None:
    await store.do(SetQueueSettings("q", PAUSED, "declared"))
    await store.do(SetQueueSettings("q", PAUSED, "declared"))
    await store.do(SetQueueSettings("q", RESUMED))
    await store.do(SetQueueSettings("q", NO_SETTINGS))

    assert rows(schema, KEPT) == [('{"paused": true}', '{"paused": false}', 2)]
    assert await store.ask(GetQueueSettings(["q", "other"])) == {"q": RESUMED}


async def test_a_field_of_a_newer_release_stays_when_another_is_set(store: Store, schema: str) -> None:
    rows(schema, """insert into {}.windlass_queue (queue, override) values ('q', '{{"limit": {{"running": 4}}}}')""")

    await store.set_paused("q", paused=True)

    [(_, override, revision)] = rows(schema, KEPT)
    assert json.loads(override) == {"limit": {"running": 4}, "paused": True}
    assert revision == 1


@pytest.mark.parametrize("by_priority", [False, True])
async def test_an_override_holds_over_what_is_declared(store: Store, *, by_priority: bool) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    await store.do(SetQueueSettings("q", PAUSED, "declared"))
    assert await claimed(store, by_priority=by_priority) == 0

    await store.do(SetQueueSettings("q", RESUMED))
    assert await claimed(store, by_priority=by_priority) == 1

    await store.do(SetQueueSettings("q", PAUSED))
    assert await claimed(store, by_priority=by_priority) == 0
    assert [stats.paused for stats in await store.stats()] == [True]


@pytest.mark.parametrize("damage", DAMAGED)
async def test_damaged_settings_stop_no_claim_and_no_page_and_can_be_set_again(
    store: Store, schema: str, damage: str
) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    async with connection_to(schema) as outside:
        await outside.execute(
            "insert into windlass_queue (queue, declared, override) values ('q', $1, $1)"
            " on conflict (queue) do update set declared = excluded.declared, override = excluded.override",
            damage,
        )

    assert await claimed(store) == 1
    assert await store.paused(["q"]) == []
    assert [stats.paused for stats in await store.stats()] == [False]
    assert "'q' are damaged (declared and override)" in await damage_found(store)

    await store.set_paused("q", paused=True)

    assert await store.paused(["q"]) == ["q"]
    assert await claimed(store) == 0
    assert json.loads(rows(schema, KEPT)[0][0]) == json.loads(damage)
    assert "'q' are damaged (declared)" in await damage_found(store)


async def test_a_pause_stays_when_the_schema_is_brought_up_and_an_older_release_is_refused(schema: str) -> None:
    await bring_up(schema, up_to(BEFORE_SETTINGS))
    rows(schema, "insert into {}.windlass_queue (queue, paused) values ('q', true), ('r', false)")
    options = options_of(schema)
    async with connected(options, cached=True) as running:
        await running.execute(f'set search_path to "{options.schema}", pg_temp')
        claim = "select paused from windlass_queue where queue = 'q'"
        assert await running.fetchval(claim)

        await bring_up(schema, OURS)

        # a server of the older release that is open goes on, but for pauses, and cannot be started again
        assert await running.fetchval(claim)
        with pytest.raises(asyncpg.GeneratedAlwaysError, match="paused"):
            await running.execute("update windlass_queue set paused = false where queue = 'q'")
        with pytest.raises(SchemaTooNew, match=f"version {OURS.known}.*{BEFORE_SETTINGS}"):
            await prepare(running, options, migrations=up_to(BEFORE_SETTINGS))
    async with opened(schema) as store:
        assert await store.paused(["q", "r"]) == ["q"]
    assert rows(schema, KEPT) == [("{}", '{"paused": true}', 1)]


async def test_the_column_that_processes_of_before_read_follows_the_settings(store: Store, schema: str) -> None:
    found: list[tuple[object, ...]] = []
    changes: list[tuple[StoredSettings, Layer]] = [(PAUSED, "declared"), (RESUMED, "override"), (PAUSED, "override")]
    for settings, layer in changes:
        await store.do(SetQueueSettings("q", settings, layer))
        found += rows(schema, "select paused from {}.windlass_queue where queue = 'q'")

    assert found == [(True,), (False,), (True,)]
