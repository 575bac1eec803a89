"""How the fields of a job are damaged in a SlateDB database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from tests.damage.table import DamagedStore, Damager
from tests.stores.slatedb.opened import database_of, in_room, table_of
from windlass.core.job import Job
from windlass.core.store import Store
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records

FIELDS: Final = Record.__struct_fields__
COUNTS: Final = ("seq", "priority", "max_attempts", "attempt", "delivery", "place")
TIMES: Final = ("created_at", "run_at", "claimed_at", "lease_expires_at", "finished_at")
BYTES: Final = ("payload", "result")
LISTS: Final = ("progress", "hold", "history", "log", "details")
APART: Final = {f"{part.field} apart": part for part in records.PARTS}
"""The parts of a record that lie under keys of their own when they are large."""

encode: Final = msgspec.msgpack.encode
BAD_TEXT: Final = b"\xa2\xff\xfe"
LONG: Final = "x" * 50_000
OF_ANY: Final = {
    "wrong type": encode([5]),
    "empty": encode(""),
    "huge": encode(LONG),
    "not UTF-8": BAD_TEXT,
    "missing": encode(None),
}
OF_COUNTS: Final = {"wrong type": encode("text"), "huge": encode(2**64 - 1), "out of range": encode(-1)}
OF_TIMES: Final = {
    "wrong type": encode("2026-01-01T00:00:00"),
    "huge": encode(msgspec.msgpack.Ext(-1, b"\x00" * 4 + (2**62).to_bytes(8))),
    "out of range": encode(msgspec.msgpack.Ext(-1, b"\xff" * 12)),
}
OF_BYTES: Final = {"wrong type": encode(5), "empty": encode(b""), "huge": encode(bytes(50_000))}
OF_LISTS: Final = {
    "wrong type": encode(5),
    "empty": encode([]),
    "huge": encode([0] * 50_000),
    "not UTF-8": b"\x91" + BAD_TEXT,
}
OF_HEADERS: Final = {"wrong type": encode(5), "empty": encode({}), "huge": encode({"x": LONG})}
OF_BOOLEANS: Final = {"wrong type": encode("text"), "huge": encode(2**64 - 1), "out of range": encode(2)}


@asynccontextmanager
async def damager(url: str, store: Store) -> AsyncGenerator[Damager]:
    """Write behind the back of the owner, which forgets what it has read."""
    del url
    database = database_of(store)

    async def damage(job: Job, field: str, what: str) -> bool | None:
        main = await in_room(store, lambda: database.get(keys.job(job.id)))
        assert main is not None
        changes = part_changes(job, main, field, what) if field in APART else changes_of(job, main, field, what)
        if changes is None:
            return None
        await in_room(store, lambda: database.write(changes))
        table = table_of(store)
        vars(table.jobs)["_values"].pop(job.id, None)
        for known in ("_places", "_apart"):
            vars(table)[known].pop(job.id, None)
        return True

    yield damage


def changes_of(job: Job, main: bytes, field: str, what: str) -> dict[bytes, bytes | None] | None:
    """Return what writes another value in place of a field."""
    values = [bytes(raw) for raw in msgspec.msgpack.decode(memoryview(main)[1:], type=list[msgspec.Raw])]
    value = value_of(field, what)
    if value is None:
        return None
    values[FIELDS.index(field)] = value
    return {keys.job(job.id): main[:1] + b"\xdc" + len(values).to_bytes(2) + b"".join(values)}


def part_changes(job: Job, main: bytes, field: str, what: str) -> dict[bytes, bytes | None] | None:
    """Return what lets a part lie apart, damaged."""
    part = APART[field]
    damaged = {"wrong type": encode(5), "empty": b"", "not UTF-8": b"\x91" + BAD_TEXT, "missing": None}
    if what not in damaged:
        return None
    record = records.join(job.id, main)
    setattr(record, part.field, part.empty)
    flags = 1 << records.PARTS.index(part)
    return {keys.job(job.id): bytes([flags]) + encode(record), keys.part(job.id, part.letter): damaged[what]}


def value_of(field: str, what: str) -> bytes | None:
    """Return the bytes of a damaged value."""
    special = (
        (COUNTS, OF_COUNTS),
        (TIMES, OF_TIMES),
        (BYTES, OF_BYTES),
        (LISTS, OF_LISTS),
        (("headers",), OF_HEADERS),
        (("cancel_requested", "has_followers"), OF_BOOLEANS),
    )
    of_type = [values[what] for fields, values in special if field in fields and what in values]
    return of_type[0] if of_type else OF_ANY.get(what)


STORE: Final = DamagedStore(
    name="slatedb+memory",
    title="SlateDB",
    fields=(*(field for field in FIELDS if field != "damage"), *APART),
    needed_by={"ack": ("token",), "nack": ("token",), "move": ("kind",)},
    damager=damager,
)
