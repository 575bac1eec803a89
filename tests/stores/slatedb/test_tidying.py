import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from windlass.core.errors import Fenced
from windlass.stores.slatedb import settings
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.doors import open_database

PATIENCE = 30.0
COLLECTED = [f"garbage_collector_options.{what}_options" for what in ("wal", "manifest", "compactions", "compacted")]
AT_ONCE = {
    **{f"{what}.interval": "100ms" for what in COLLECTED},
    **{f"{what}.min_age": "0ms" for what in COLLECTED},
    "compactor_options.poll_interval": "100ms",
    "compactor_options.worker.compactions_poll_interval": "100ms",
    # an owner must have seen a merge before what it has replaced is removed
    "compactor_options.checkpoint_lifetime": "2s",
    "manifest_poll_interval": "100ms",
}
"""What makes the engine tidy up in a second that takes a minute otherwise."""


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return Address("file", "", str(tmp_path))


async def eventually(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await what():  # noqa: ASYNC110 - the engine signals nothing
            await asyncio.sleep(0.02)


async def test_what_was_deleted_takes_no_room(
    address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_settings(monkeypatch, AT_ONCE)
    monkeypatch.setattr("windlass.stores.slatedb.database.flushes_to_a_table", ten_flushes)
    database = await open_database(address)
    for value in (bytes(range(256)), None):
        for number in range(40):
            await database.write({b"%02d-%03d" % (number, row): value for row in range(100)})
            await database.flush()
    assert bytes_in(tmp_path) > 500_000

    async def is_tidy() -> bool:
        # an owner beats, and whatever is in memory is a table at some time
        await database.write({b"beat": b""})
        await database.flush()
        return bytes_in(tmp_path) < 50_000

    await eventually(is_tidy)
    assert await database.scan(b"\0", b"\xff", limit=9) == [(b"beat", b"")]
    await database.close()


def bytes_in(folder: Path) -> int:
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return found


def ten_flushes(_: Address) -> int:
    return 10


async def test_a_former_owner_that_slept_while_all_was_tidied_up_is_fenced_all_the_same(
    address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as asleep:
        change_settings(asleep, {"manifest_poll_interval": "3600s"})
        first = await open_database(address)
        await first.write({b"a": b"1"})
        await first.flush()
    written = tmp_path / "wal" / "00000000000000000002.sst"
    assert written.exists()
    change_settings(monkeypatch, AT_ONCE)
    monkeypatch.setattr("windlass.stores.slatedb.database.flushes_to_a_table", one_flush)
    second = await open_database(address)

    async def is_tidy() -> bool:
        await second.write({b"b": b"2"})
        await second.flush()
        return not written.exists()

    await eventually(is_tidy)
    await first.write({b"a": b"doomed"})
    with pytest.raises(Fenced):
        await first.flush()

    assert await second.get(b"a") == b"1"
    await first.close()
    await second.close()


def one_flush(_: Address) -> int:
    return 1


def change_settings(patch: pytest.MonkeyPatch, changed: dict[str, str]) -> None:
    plain = settings.values_of

    def values_of(address: Address) -> dict[str, object]:
        return {**plain(address), **changed}

    patch.setattr(settings, "values_of", values_of)


def test_marks_that_fence_a_former_owner_off_are_never_removed(address: Address) -> None:
    made = json.loads(settings.settings_of(address).to_json_string())

    assert made["garbage_collector_options"]["wal_fence_options"]["dry_run"] is True
