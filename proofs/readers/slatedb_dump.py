"""All that a store on SlateDB holds, as the plain `slatedb` package reads it: no code of Windlass has a part in it."""

import asyncio
import os
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit

import msgspec
from slatedb.uniffi import DbReaderBuilder, KeyRange, ObjectStoreBuilder, ObjectStoreType, ReaderMode

Dump: TypeAlias = Mapping[bytes, bytes]

PATIENCE: Final = 60.0
PAGE: Final = 1_000
ALL: Final = KeyRange(start=None, start_inclusive=False, end=None, end_inclusive=False)
ENDED: Final = {"succeeded": b"s", "dead": b"d", "cancelled": b"c"}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
BIAS: Final = 2**63
"""What is added to a time, so that times before 1970 sort too."""
APART: Final = {"payload": (1, b"p"), "history": (4, b"h")}
"""The parts of a record that may lie apart: the bit that says so, and the letter that the key ends with."""


class Kept(NamedTuple):
    """A job as its record has it; what else is kept of it is of no concern here."""

    id: str
    seq: int
    created_at: datetime
    run_at: datetime
    queue: str
    kind: str | None
    payload: bytes
    headers: dict[str, str]
    priority: int
    state: str
    attempt: int
    delivery: int
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    token: str | None
    history: list[list[Any]]
    """Number, attempt, begin, end, worker, outcome and failure of each delivery that has ended."""
    apart: frozenset[bytes]
    """The letters of the parts that lie apart."""

    @property
    def name(self) -> bytes:
        """The id as keys have it."""
        return bytes.fromhex(self.id.replace("-", ""))

    @property
    def place(self) -> bytes:
        """The key at which the job must stand, and at no other."""
        if self.state == "pending":
            line = b"\1" if self.kind is None else b"\2" + _name(self.kind)
            place = struct.pack(">IQQ", self.priority, micros(self.run_at), self.seq)
            return b"l" + _name(self.queue) + line + place + self.name
        family, at = {
            "scheduled": (b"d" + _name(self.queue), self.run_at),
            "running": (b"r" + _name(self.queue), self.lease_expires_at),
        }.get(self.state) or (b"e" + _name(self.queue) + ENDED[self.state], self.finished_at)
        return family + struct.pack(">QQ", micros(at or self.run_at), self.seq) + self.name

    @property
    def order(self) -> tuple[bytes, bytes]:
        """The key and the value by which the job has its place among all."""
        return b"o" + struct.pack(">Q", self.seq), self.name


def dump(url: str) -> Dump:
    """Return every key and value that is durable."""
    return asyncio.run(asyncio.wait_for(_dump(url), PATIENCE))


async def _dump(url: str) -> Dump:
    parts = urlsplit(url)
    builder = DbReaderBuilder(*_objects(parts.scheme, parts.netloc, parts.path, parse_qs(parts.query)))
    mode: Any = ReaderMode.FOLLOW_LATEST()
    builder.with_reader_mode(mode)
    reader = await builder.build()
    try:
        rows = await reader.scan(ALL)
        found: dict[bytes, bytes] = {}
        while page := await rows.next_batch(PAGE):
            found |= {row.key: row.value for row in page}
    finally:
        await reader.shutdown()
    return found


def _objects(scheme: str, bucket: str, path: str, options: Mapping[str, list[str]]) -> tuple[str, Any]:
    """Return the path of the database, and the object store that it is in."""
    if scheme == "slatedb+file":
        builder = ObjectStoreBuilder(ObjectStoreType.LOCAL)
        builder.with_config("local_path", path)
        return "", builder.build()
    builder = ObjectStoreBuilder(ObjectStoreType.S3)
    for name, value in {
        "bucket": bucket,
        "endpoint": options["endpoint"][0],
        "allow_http": "true",
        "region": os.environ["AWS_REGION"],
        "access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }.items():
        builder.with_config(name, value)
    return path.strip("/"), builder.build()


def jobs_in(found: Dump) -> list[Kept]:
    """Return the jobs."""
    return [_kept(found, key, value) for key, value in found.items() if key.startswith(b"j")]


def _kept(found: Dump, key: bytes, value: bytes) -> Kept:
    flags, fields = value[0], msgspec.msgpack.decode(value[1:])
    apart = {name: letter for name, (bit, letter) in APART.items() if flags & bit}
    whole = {name: msgspec.msgpack.decode(found[b"p" + key[1:] + letter]) for name, letter in apart.items()}
    letters = frozenset(letter for bit, letter in enumerate((b"p", b"r", b"h", b"l")) if flags & 1 << bit)
    return Kept(
        id=fields[3],
        seq=fields[0],
        created_at=fields[1],
        run_at=fields[2],
        queue=fields[4],
        kind=fields[5],
        payload=whole.get("payload", fields[6]),
        headers=fields[8],
        priority=fields[10],
        state=fields[17],
        attempt=fields[19],
        delivery=fields[20],
        claimed_at=fields[21],
        lease_expires_at=fields[22],
        finished_at=fields[23],
        worker=fields[24],
        token=fields[25],
        history=whole.get("history", fields[31]),
        apart=letters,
    )


def micros(at: datetime) -> int:
    """Return a time as keys have it."""
    return (at - EPOCH) // timedelta(microseconds=1) + BIAS


def names_in(key: bytes) -> list[str]:
    """Return the names that a key is made of."""
    return [part.replace(b"\0\xff", b"\0").decode() for part in key.removesuffix(b"\0\1").split(b"\0\1")]


def _name(text: str) -> bytes:
    return text.encode().replace(b"\0", b"\0\xff") + b"\0\1"
