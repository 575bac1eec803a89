"""The caller's own key space: beside the jobs, and walled off from them."""

import asyncio

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidValue, ValueTooLarge
from windlass.core.names import MAX_KEY, MAX_VALUE
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.conformance.given import claimed
from windlass.testing.conformance.reach import at_once


async def test_kv_is_written_with_a_new_job(client: Client, store: Store) -> None:
    async with at_once(store):
        done = await client.enqueue("email", b"hello", kv={"k": b"v"})

        assert done.created
        assert (await claimed(client, "email")).job.payload == b"hello"
        assert await client.kv.get("k") == b"v"


async def test_kv_is_not_written_when_the_key_is_held(client: Client, store: Store) -> None:
    async with at_once(store):
        first = await client.enqueue("email", b"", unique="u", kv={"k": b"1"})

        second = await client.enqueue("email", b"", unique="u", kv={"k": b"2"})

        assert second == (first.id, False)
        assert (await client.stats("email")).pending == 1
        assert await client.kv.get("k") == b"1"


async def test_a_value_over_the_limit_is_refused_and_nothing_is_enqueued(client: Client) -> None:
    with pytest.raises(ValueTooLarge) as refused:
        await client.enqueue("email", b"", kv={"k": b"x" * (MAX_VALUE + 1)})

    assert (refused.value.size, refused.value.limit) == (MAX_VALUE + 1, MAX_VALUE)
    assert await client.queues() == []


@pytest.mark.parametrize("form", ["{id}", "job:{id}", "jobs/{id}", "windlass:job:{id}", "\x00{id}", "queue:email"])
async def test_a_key_that_looks_like_one_of_ours_touches_nothing(client: Client, form: str) -> None:
    done = await client.enqueue("email", b"real", unique="k")
    key = form.format(id=done.id)

    await client.kv.put(key, b"mine")

    claim = await claimed(client, "email")
    assert (claim.job.id, claim.job.payload) == (done.id, b"real")
    await client.ack(claim)
    assert await client.kv.get(key) == b"mine"
    assert await client.kv.scan() == [(key.encode(), b"mine")]


async def test_a_deleted_value_is_absent(client: Client) -> None:
    await client.kv.put("k", b"v")

    await client.kv.delete("k")

    assert await client.kv.get("k") is None
    await client.kv.delete("k")


async def test_a_value_is_replaced(client: Client) -> None:
    await client.kv.put("k", b"1")
    await client.kv.put("k", b"")

    assert await client.kv.get("k") == b""


async def test_text_keys_are_their_utf8_bytes(client: Client) -> None:
    await client.kv.put("schlüssel", b"v")

    assert await client.kv.get("schlüssel".encode()) == b"v"


@pytest.mark.parametrize("key", [b"\x00", b"\xff" * MAX_KEY, b"a\x00b", bytes(range(256)), "ü" * 512])
async def test_a_key_may_be_any_bytes(client: Client, key: bytes | str) -> None:
    await client.kv.put(key, b"v")

    assert await client.kv.get(key) == b"v"
    [(stored, _)] = await client.kv.scan()
    assert stored == (key.encode() if isinstance(key, str) else key)


@pytest.mark.parametrize("key", ["", b"", "x" * (MAX_KEY + 1), "ü" * 513])
async def test_a_key_of_a_wrong_size_is_refused(client: Client, key: bytes | str) -> None:
    with pytest.raises(InvalidValue):
        await client.kv.put(key, b"v")

    assert await client.kv.scan() == []


async def test_a_value_of_the_largest_size_is_kept(client: Client) -> None:
    value = bytes(range(256)) * (MAX_VALUE // 256)

    await client.kv.put("k", value)

    assert await client.kv.get("k") == value
    with pytest.raises(ValueTooLarge):
        await client.kv.put("k", value + b"x")


async def test_a_value_is_set_only_if_it_is_what_was_expected(client: Client) -> None:
    assert await client.kv.compare_and_set("k", None, b"1")
    assert not await client.kv.compare_and_set("k", None, b"2")
    assert not await client.kv.compare_and_set("k", b"0", b"2")
    assert await client.kv.compare_and_set("k", b"1", b"2")

    assert await client.kv.get("k") == b"2"


async def test_an_empty_value_is_not_an_absent_one(client: Client) -> None:
    await client.kv.put("k", b"")

    assert not await client.kv.compare_and_set("k", None, b"1")
    assert await client.kv.compare_and_set("k", b"", b"1")


async def test_a_value_is_deleted_only_if_it_is_what_was_expected(client: Client) -> None:
    await client.kv.put("k", b"1")

    assert not await client.kv.compare_and_delete("k", b"0")
    assert await client.kv.compare_and_delete("k", b"1")
    assert not await client.kv.compare_and_delete("k", b"1")

    assert await client.kv.get("k") is None


async def test_a_write_whose_condition_holds_is_done(store: Store) -> None:
    """Also when there was nothing to delete."""
    assert await store.kv_write(KvWrite(b"k", None))
    assert await store.kv_write(KvWrite(b"k", None, None))
    assert not await store.kv_write(KvWrite(b"k", None, b"v"))
    assert await store.kv_write(KvWrite(b"k", b"v", None))
    assert await store.kv_write(KvWrite(b"k", b"v", b"v"))


async def test_of_rivals_one_sets_the_value(client: Client) -> None:
    won = await asyncio.gather(*(client.kv.compare_and_set("k", None, bytes([n])) for n in range(20)))

    assert sum(won) == 1
    assert await client.kv.get("k") == bytes([won.index(True)])


async def test_keys_are_scanned_in_the_order_of_their_bytes(client: Client) -> None:
    for key in (b"b", b"a\xff", b"a", b"\xff", b"a\x00", b"ab", b"B"):
        await client.kv.put(key, key)

    assert [key for key, _ in await client.kv.scan()] == [b"B", b"a", b"a\x00", b"ab", b"a\xff", b"b", b"\xff"]
    assert [key for key, _ in await client.kv.scan(b"a")] == [b"a", b"a\x00", b"ab", b"a\xff"]
    assert [key for key, _ in await client.kv.scan(b"\xff")] == [b"\xff"]
    assert await client.kv.scan(b"c") == []


async def test_a_scan_is_paged_by_the_last_key(client: Client) -> None:
    for n in range(5):
        await client.kv.put(f"k{n}", b"v")
    await client.kv.put("other", b"v")

    first = await client.kv.scan("k", limit=2)
    second = await client.kv.scan("k", after=first[-1][0], limit=2)
    third = await client.kv.scan("k", after=second[-1][0], limit=2)

    assert [[key for key, _ in page] for page in (first, second, third)] == [[b"k0", b"k1"], [b"k2", b"k3"], [b"k4"]]
    assert await client.kv.scan("k", limit=0) == []
    assert await client.kv.scan("k", after="z") == []


async def test_a_scan_lists_every_key_however_many_there_are(client: Client) -> None:
    keys = [f"part/{n:03}".encode() for n in range(250)]
    for key in (*keys, b"past"):
        await client.kv.put(key, b"v")

    assert [key for key, _ in await client.kv.scan("part/")] == keys
    assert [key async for key, _ in client.kv.scan("part/", after=keys[9])] == keys[10:]
    assert [key for key, _ in await client.kv.scan("part/", limit=150)] == keys[:150]


async def test_a_scan_lists_values_of_the_largest_size(client: Client) -> None:
    for n in range(100):
        await client.kv.put(f"large/{n:03}", bytes(MAX_VALUE))

    assert [len(value) async for _, value in client.kv.scan("large/")] == [MAX_VALUE] * 100


async def test_a_scan_takes_a_prefix_as_it_is(client: Client) -> None:
    for key in ("a%", "a_", "a*", "ab"):
        await client.kv.put(key, b"v")

    assert [key for key, _ in await client.kv.scan("a%")] == [b"a%"]
    assert [key for key, _ in await client.kv.scan("a_")] == [b"a_"]
    assert [key for key, _ in await client.kv.scan("a*")] == [b"a*"]


async def test_several_values_are_read_in_the_order_of_their_keys(store: Store, client: Client) -> None:
    await client.kv.put("a", b"1")
    await client.kv.put("b", b"2")

    assert await store.kv_get([b"b", b"x", b"a", b"b"]) == [b"2", None, b"1", b"2"]


async def test_kv_of_an_enqueue_may_delete(client: Client, store: Store) -> None:
    await client.kv.put("old", b"1")

    async with at_once(store):
        await client.enqueue("email", b"", kv={"old": None, "new": b"2"})

        assert await client.kv.scan() == [(b"new", b"2")]


async def test_kv_survives_what_becomes_of_the_job(client: Client, store: Store) -> None:
    async with at_once(store):
        done = await client.enqueue("email", b"", kv={"k": b"v"}, unique=Unique("u", until="finished"))
        await client.cancel(done.id)
        await client.delete(done.id)

        assert await client.kv.get("k") == b"v"
