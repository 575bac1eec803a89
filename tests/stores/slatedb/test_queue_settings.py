"""The settings of a queue in its record, which earlier releases read and write without them."""

import msgspec
import pytest

from tests.stores.slatedb.lived import job
from tests.stores.slatedb.opened import database_of, in_room, new_address, opened
from windlass.core.commands import SetQueueSettings
from windlass.core.queue_settings import NO_ROW, StoredSettings
from windlass.core.store import Store
from windlass.stores.slatedb import SlateStore, keys, records

PAUSED, RESUMED = StoredSettings(paused=True), StoredSettings(paused=False)
COUNTS = [0] * 6


class FormerRecord(msgspec.Struct, array_like=True):
    """The record of a queue as commit 04839a3 reads and writes it."""

    paused: bool = False
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    lines: list[tuple[str | None, int]] = msgspec.field(default_factory=list[tuple[str | None, int]])
    totals: list[int] = msgspec.field(default_factory=lambda: [0] * 6)
    begins: list[tuple[bytes, bytes]] = msgspec.field(default_factory=list[tuple[bytes, bytes]])


async def kept(store: SlateStore, queue: str = "email") -> bytes:
    async def look() -> bytes:
        found = await database_of(store).get(keys.queue_record(queue))
        assert found is not None
        return found

    return await in_room(store, look)


@pytest.mark.parametrize("paused", [True, False])
def test_a_record_of_an_earlier_release_says_the_pause(paused: bool) -> None:  # noqa: FBT001
    record = records.queue_record(records.encode(FormerRecord(paused, 1, totals=COUNTS)))

    assert record.settings.settings.paused is (True if paused else None)
    assert record.scheduled == 1


async def test_an_earlier_release_reads_the_pause_of_this_one() -> None:
    async with opened() as store:
        await store.set_paused("email", paused=True)
        assert msgspec.msgpack.decode(await kept(store), type=FormerRecord).paused

        await store.set_paused("email", paused=False)
        assert not msgspec.msgpack.decode(await kept(store), type=FormerRecord).paused


@pytest.mark.parametrize("paused", [True, False])
def test_what_an_earlier_release_has_written_last_holds(paused: bool) -> None:  # noqa: FBT001
    row = NO_ROW.changed(StoredSettings(paused=not paused), "declared")

    record = records.QueueRecord(paused=paused, kept_settings=records.KeptSettings(str(row.declared)))

    assert (record.settings.settings.paused is True) == paused
    assert record.settings.declared == row.declared


async def test_settings_are_kept_when_the_database_is_opened_again() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.do(SetQueueSettings("email", PAUSED, "declared"))
        await store.do(SetQueueSettings("sms", PAUSED, "declared"))
        await store.do(SetQueueSettings("sms", RESUMED))
    async with opened(address) as store:
        assert await store.paused(["email", "sms"]) == ["email"]
        row = records.queue_record(await kept(store, "sms")).kept_settings
        assert row == records.KeptSettings('{"paused":true}', '{"paused":false}', 2)


async def test_damaged_settings_are_named_and_stop_no_claim() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1)])
        record = records.queue_record(await kept(store))
        record.kept_settings = records.KeptSettings("no json", "", 1)
        damaged = records.encode(record)
        await in_room(store, lambda: database_of(store).write({keys.queue_record("email"): damaged}))
    async with opened(address) as store:
        assert "settings" in await names_of_findings(store)
        assert [stats.paused for stats in await store.stats()] == [False]
        assert await store.paused(["email"]) == []

        await store.do(SetQueueSettings("email", PAUSED, "declared"))

        assert await store.paused(["email"]) == ["email"]
        assert "settings" not in await names_of_findings(store)


async def names_of_findings(store: Store) -> set[str]:
    return {finding.name for finding in await store.check() if finding.level == "error"}
