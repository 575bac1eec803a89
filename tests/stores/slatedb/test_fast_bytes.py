import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from slatedb.uniffi import DbBuilder, KeyRange, ObjectStore, Settings, WriteBatch
from slatedb.uniffi._slatedb_uniffi import slatedb

from windlass.stores.slatedb import fast_bytes, fast_calls

# what is private has no types
binding: Any = slatedb
SIZES = [*range(70), 127, 128, 255, 256, 1000, 4095, 4096, 65_535, 65_536, 100_000]


def slow() -> bool:
    return False


@pytest.fixture(params=["fast", "slow"])
def speed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "slow":
        monkeypatch.setattr(fast_bytes, "can_be_fast", slow)
    return str(request.param)


def test_the_binding_is_one_that_we_know() -> None:
    assert fast_bytes.can_be_fast()
    assert fast_calls.speed_up()


@pytest.mark.parametrize("name", ["_UniffiFfiConverterBytes", "_uniffi_rust_call_async"])
def test_a_binding_without_a_name_that_we_use_is_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    check: Callable[[], bool] = fast_bytes.can_be_fast.__wrapped__
    assert check()

    monkeypatch.delattr(binding, name)

    assert not check()


def test_a_binding_that_reads_bytes_in_another_way_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def little_endian(buffer: Any) -> int:  # noqa: ANN401
        return int.from_bytes(buffer.read(4), "little")

    monkeypatch.setattr(binding._UniffiRustBufferStream, "read_i32", little_endian)

    assert not fast_bytes.can_be_fast.__wrapped__()


def test_a_binding_that_waits_in_another_way_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def otherwise(rust_future: object, ffi_poll: object) -> None:
        """Wait in a way that we do not know."""

    monkeypatch.setattr(binding, "_uniffi_rust_call_async", otherwise)

    assert not fast_calls.speed_up()
    assert binding._uniffi_rust_call_async is otherwise


@pytest.mark.usefixtures("speed")
async def test_bytes_of_all_sizes_come_back_as_they_went_in() -> None:
    chance = random.Random(1)
    rows = {b"%06d" % size + chance.randbytes(size % 300): chance.randbytes(size) for size in SIZES}
    db = await DbBuilder("", ObjectStore.resolve("memory:///")).build()

    await db.write(fast_bytes.batch_of(rows))

    every = KeyRange(start=None, start_inclusive=False, end=None, end_inclusive=False)
    assert dict(await fast_bytes.next_pairs(await db.scan(every), 1000)) == rows
    assert {key: await db.get(key) for key in rows} == rows
    await db.shutdown()


@pytest.mark.usefixtures("speed")
async def test_a_batch_deletes_where_there_is_no_value() -> None:
    db = await DbBuilder("", ObjectStore.resolve("memory:///")).build()
    await db.write(fast_bytes.batch_of({b"a": b"1", b"b": b"2"}))

    await db.write(fast_bytes.batch_of({b"a": None, b"c": b""}))

    assert [await db.get(key) for key in (b"a", b"b", b"c")] == [None, b"2", b""]
    await db.shutdown()


@pytest.mark.usefixtures("speed")
def test_a_key_that_the_engine_refuses_is_an_error_and_nothing_worse() -> None:
    with pytest.raises(Exception, match="key cannot be empty"):
        fast_bytes.batch_of({b"a": b"1", b"": b"2"})


@pytest.mark.usefixtures("speed")
async def test_rows_come_in_parts_until_the_end() -> None:
    db = await DbBuilder("", ObjectStore.resolve("memory:///")).build()
    await db.write(fast_bytes.batch_of({b"%d" % number: b"" for number in range(5)}))
    rows = await db.scan(KeyRange(start=b"1", start_inclusive=False, end=b"4", end_inclusive=True))

    parts = [await fast_bytes.next_pairs(rows, 2) for _ in range(3)]

    assert parts == [[(b"2", b""), (b"3", b"")], [(b"4", b"")], []]
    await db.shutdown()


async def test_what_the_engine_reads_slowly_is_waited_for_by_many_at_once() -> None:
    assert fast_calls.speed_up()
    db = await DbBuilder("", ObjectStore.resolve("memory:///")).build()

    async def put(number: int) -> bytes | None:
        batch = WriteBatch()
        batch.put(b"%d" % number, b"%d" % number)
        handle = await db.write(batch)
        await handle.await_durable()
        return await db.get(b"%d" % number)

    assert await asyncio.gather(*map(put, range(200))) == [b"%d" % number for number in range(200)]
    await db.shutdown()


async def test_a_call_that_is_given_up_leaves_the_others_alone() -> None:
    assert fast_calls.speed_up()
    builder, settings = DbBuilder("", ObjectStore.resolve("memory:///")), Settings.default()
    # it is not durable by itself before it is given up
    settings.set("flush_interval", '"1h"')
    builder.with_settings(settings)
    db = await builder.build()
    batch = WriteBatch()
    batch.put(b"a", b"1")
    handle = await db.write(batch)
    given_up = asyncio.create_task(handle.await_durable())
    await asyncio.sleep(0)

    given_up.cancel()
    await asyncio.wait([given_up])

    assert given_up.cancelled()
    assert await db.get(b"a") == b"1"
    await db.shutdown()
