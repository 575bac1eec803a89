"""Settings of queues: both layers are kept, and the set of paused queues, which earlier releases use too, holds."""

import asyncio
import json
from typing import Any

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.stores.redis.calls import wanting
from windlass.core.commands import SetQueueSettings
from windlass.core.errors import StoreCorrupt
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job

PAUSED = StoredSettings(paused=True)
NOT_PAUSED = StoredSettings(paused=False)


class Keys:
    """The keys of a store, as its server has them."""

    def __init__(self, url: str) -> None:
        [self._server] = servers_of(url)
        self._begin = f"{{{prefix_of(url)}}}|"

    def __call__(self, command: str, key: str, *words: str) -> Any:  # noqa: ANN401 - each command has its own
        return ask(self._server, command, self._begin + key, *words)

    def row(self, queue: str) -> tuple[object, object, int]:
        """Return both layers and the revision of a queue."""
        row: dict[str, str] = self("HGETALL", f"settings|{queue}")
        declared, override = (json.loads(row[layer] or "{}") for layer in ("declared", "override"))
        return declared, override, int(row["revision"])


@pytest.fixture
def keys(url: str) -> Keys:
    return Keys(url)


async def settings_of(store: Store, queue: str) -> StoredSettings:
    return (await store.ask(GetQueueSettings([queue]))).get(queue, NO_SETTINGS)


async def is_claimed_from(store: Store, queue: str) -> bool:
    await store.enqueue([a_job(queue)])
    return bool(await store.claim(wanting(queue)))


async def test_a_revision_counts_the_changes_of_a_queue(store: Store, keys: Keys) -> None:
    for paused in (True, True, False):
        await store.set_paused("q", paused=paused)

    assert keys.row("q") == ({}, {"paused": False}, 2)


async def test_an_override_holds_in_place_of_what_is_declared(store: Store, keys: Keys) -> None:
    await store.do(SetQueueSettings("q", PAUSED, "declared"))
    assert not await is_claimed_from(store, "q")

    await store.do(SetQueueSettings("q", NOT_PAUSED, "override"))

    assert await is_claimed_from(store, "q")
    assert keys.row("q") == ({"paused": True}, {"paused": False}, 2)


async def test_changes_at_once_are_all_kept(store: Store, keys: Keys) -> None:
    changes = [SetQueueSettings("q", PAUSED, "declared"), SetQueueSettings("q", NOT_PAUSED, "override")]

    await asyncio.gather(*[each.do(change) for each in (store, store, store) for change in changes])

    assert keys.row("q") == ({"paused": True}, {"paused": False}, 2)
    assert await settings_of(store, "q") == NOT_PAUSED


async def test_settings_of_a_newer_release_stay(store: Store, keys: Keys) -> None:
    keys("HSET", "settings|q", "override", '{"limit": 7, "weights": {"gold": []}}', "revision", "41")

    await store.set_paused("q", paused=True)

    assert keys.row("q") == ({}, {"limit": 7, "paused": True, "weights": {"gold": []}}, 42)


async def test_a_pause_by_an_earlier_release_holds(store: Store, keys: Keys) -> None:
    keys("SADD", "paused", "q")

    assert await settings_of(store, "q") == PAUSED
    assert not await is_claimed_from(store, "q")
    await store.do(SetQueueSettings("q", NO_SETTINGS, "declared"))
    assert not await is_claimed_from(store, "q")
    await store.set_paused("q", paused=False)
    assert await is_claimed_from(store, "q")


async def test_a_pause_that_an_earlier_release_has_ended_does_not_come_back(store: Store, keys: Keys) -> None:
    await store.set_paused("q", paused=True)
    keys("SREM", "paused", "q")

    assert await settings_of(store, "q") == NOT_PAUSED
    await store.do(SetQueueSettings("q", PAUSED, "declared"))

    assert await is_claimed_from(store, "q")
    assert keys.row("q")[:2] == ({"paused": True}, {"paused": False})


@pytest.mark.parametrize(
    "queue, text", [("cut", '{"paused"'), ("list", "[]"), ("other", '{"paused": 7}'), ("bytes", "\udcff")]
)
async def test_a_damaged_layer_stops_no_claim_and_is_named_in_the_log(
    store: Store, keys: Keys, caplog: pytest.LogCaptureFixture, queue: str, text: str
) -> None:
    keys("HSET", f"settings|{queue}", "override", text)

    assert await is_claimed_from(store, queue)
    assert await settings_of(store, queue) == NO_SETTINGS
    [stats] = await store.stats()
    assert not stats.paused
    assert f"a layer of the settings of a queue is damaged, and left out: override of {queue}" in caplog.text
    await store.set_paused(queue, paused=True)
    assert await settings_of(store, queue) == PAUSED


async def test_settings_under_a_key_of_another_type_are_left_out_and_cannot_be_set(
    store: Store, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    await store.set_paused("paused", paused=True)
    for queue in ("q", "paused"):
        keys("DEL", f"settings|{queue}")
        keys("SADD", f"settings|{queue}", "member")

    assert await is_claimed_from(store, "q")
    assert await store.ask(GetQueueSettings(["q", "paused"])) == {"paused": PAUSED}
    assert "a layer of the settings of a queue is damaged, and left out: each of q" in caplog.text
    with pytest.raises(StoreCorrupt, match=r"settings\|q is a set instead of a hash"):
        await store.set_paused("q", paused=True)
