"""Records as the bytes that the database keeps: MessagePack, a field after the other.

The first byte of a job's record says which of its parts lie apart, under keys of their own: a part of more than a
kilobyte is not written again each time that its job moves on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Enqueued, LogLine, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Unpacked
from windlass.core.queue_settings import SettingsRow, StoredSettings
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.kit.damage import shown
from windlass.kit.moves.holds import Holder
from windlass.kit.moves.record import Count, Ended, Moment, Record
from windlass.kit.settlements import KeptResult
from windlass.stores.slatedb import keys

APART: Final = 1024
"""A part that takes more bytes than this lies apart."""

_encoder: Final = msgspec.msgpack.Encoder()
encode: Final[Callable[[Any], bytes]] = _encoder.encode


class Part(NamedTuple):
    """A part of a job's record that may be large, and the letter that its key ends with."""

    field: str
    letter: bytes
    empty: object
    decode: Callable[[bytes], object]


_log: Final = msgspec.msgpack.Decoder(tuple[LogLine, ...]).decode


def log_lines(value: bytes) -> tuple[LogLine, ...]:
    """Return the log of a job."""
    lines = _log(value)
    _check_times(*(line.at for line in lines))
    return lines


PARTS: Final = (
    Part("payload", b"p", b"", msgspec.msgpack.Decoder(bytes).decode),
    Part("result", b"r", None, msgspec.msgpack.Decoder(bytes).decode),
    Part("history", b"h", (), msgspec.msgpack.Decoder(tuple[Ended, ...]).decode),
    Part("log", b"l", (), log_lines),
)
PAYLOAD: Final = PARTS[0]

Apart: TypeAlias = Mapping[bytes, object]
"""The parts that lie apart, each as it was written, by their letters."""
NOTHING_APART: Final[Apart] = {}
UNREAD: Final = object()
"""Stands for a part that lies apart and was not read: it stays as it is, whatever becomes of its job."""
LOST: Final = object()
"""Stands for a part that lies apart and cannot be read: it stays as it is until its job has another one."""


class Split(NamedTuple):
    """A job's record as it is kept: its bytes, the parts that lie apart, and those of them that are to be written."""

    main: bytes
    apart: Apart
    written: Mapping[bytes, bytes]


_record_decoder: Final = msgspec.msgpack.Decoder(Record)


def split(record: Record, before: Apart = NOTHING_APART) -> Split:
    """Return a record as it is kept; `before` are the parts that were written before."""
    if not before and len(record.payload) <= APART and not record.result and not record.history and not record.log:
        return Split(b"\0" + encode(record), NOTHING_APART, {})
    apart: dict[bytes, object] = {}
    written: dict[bytes, bytes] = {}
    empty: dict[str, object] = {}
    flags = 0
    for at, part in enumerate(PARTS):
        written_before = before.get(part.letter)
        value = UNREAD if written_before is UNREAD else getattr(record, part.field)
        if written_before is LOST and not value:
            value = LOST
        if written_before is not value or not value:
            encoded = _large(value)
            if encoded is None:
                continue
            written[part.letter] = encoded
        apart[part.letter] = value
        empty[part.field] = part.empty
        flags |= 1 << at
    kept = msgspec.structs.replace(record, **empty) if flags else record
    return Split(bytes([flags]) + encode(kept), apart, written)


def _large(value: object) -> bytes | None:
    """Return the bytes of a part that is to lie apart."""
    if not value or (isinstance(value, bytes) and len(value) <= APART):
        return None
    encoded = encode(value)
    return encoded if len(encoded) > APART else None


def parts_apart(main: bytes) -> Iterator[Part]:
    """Give the parts that lie apart from this record."""
    # one without a byte is damaged, as `join` says
    flags = main[0] if main else 0
    return (part for at, part in enumerate(PARTS) if flags & 1 << at)


def join(job_id: JobId, main: bytes, parts: Mapping[bytes, bytes] | None = None) -> Record:
    """Return the record that was split, with the parts, by their letters, that were read.

    Raises `ValueError` for bytes that are no record of this job.
    """
    record = _record_decoder.decode(memoryview(main)[1:])
    if record.id != job_id:
        message = f"it is the record of job {record.id}"
        raise ValueError(message)
    if record.log:
        _check_times(*(line.at for line in record.log))
    if parts is not None:
        for part in parts_apart(main):
            if part.letter in parts:
                setattr(record, part.field, part.decode(parts[part.letter]))
    return record


def apart_of(record: Record, main: bytes, read: Collection[Part], lost: Collection[bytes]) -> Apart:
    """Return the parts of a record that lie apart, as far as they were `read` and are not `lost`."""
    return {
        part.letter: LOST if part.letter in lost else getattr(record, part.field) if part in read else UNREAD
        for part in parts_apart(main)
    }


class Counters(msgspec.Struct, array_like=True):
    """The last numbers that were given: to a job, to a change of a schedule, to an entry of the audit."""

    seq: Count = 0
    revision: Count = 0
    entry: Count = 0


Counts: TypeAlias = Annotated[list[Count], msgspec.Meta(min_length=6, max_length=6)]
"""How often each thing happened, in the order of `Totals`."""


class KeptSettings(NamedTuple):
    """The settings of a queue: two layers of JSON, and how often they were changed."""

    declared: str = ""
    override: str = ""
    revision: Count = 0


class QueueRecord(msgspec.Struct, array_like=True):
    """A queue: its jobs by state, its pending jobs by kind (None for raw ones), and what ever happened on it.

    `begins` says of its indexes where they begin, at this moment and until the record is written again: whoever opens
    the database need not look for it among the graves. `paused` is what the settings say, for earlier releases.
    """

    paused: bool = False
    scheduled: Count = 0
    running: Count = 0
    succeeded: Count = 0
    dead: Count = 0
    cancelled: Count = 0
    lines: list[tuple[str | None, Count]] = msgspec.field(default_factory=list[tuple[str | None, int]])
    totals: Counts = msgspec.field(default_factory=lambda: [0] * 6)
    begins: list[tuple[bytes, bytes]] = msgspec.field(default_factory=list[tuple[bytes, bytes]])
    kept_settings: KeptSettings = KeptSettings()

    @property
    def settings(self) -> SettingsRow:
        """The settings of the queue; an earlier release, which knew the pause alone, may have written it last."""
        row = SettingsRow(*self.kept_settings)
        if (row.settings.paused is True) == self.paused:
            return row
        return row.changed(StoredSettings(paused=self.paused), "override")

    @property
    def pending(self) -> int:
        """Count the jobs that wait in lines."""
        return sum(count for _, count in self.lines)

    def standing(self, state: State) -> int:
        """Count the jobs that are in `state`."""
        count: int = getattr(self, state)
        return count


class HolderRecord(msgspec.Struct, array_like=True):
    """Who holds a unique key."""

    job_id: JobId
    digest: bytes
    ends_at: Moment | None

    def holder(self) -> Holder:
        """Return it as moves take it."""
        return Holder(self.job_id, self.digest, self.ends_at)


class LockRecord(msgspec.Struct, array_like=True):
    """Who has a lock, and until when."""

    holder: str
    ends_at: Moment


class Receipt(msgspec.Struct, array_like=True):
    """Reply to a request: an enqueue, a claim, a settlement or a parcel."""

    enqueued: list[Enqueued] | None = None
    claimed: list[tuple[JobId, Token]] | None = None
    settled: list[KeptResult] | None = None
    unpacked: bool | None = None


Timing: TypeAlias = tuple[Literal["waited", "ran"], int, int]
"""What, range and count of a `TimingCount`."""

layout: Final = msgspec.msgpack.Decoder(int).decode
counters: Final = msgspec.msgpack.Decoder(Counters).decode
queue_record: Final = msgspec.msgpack.Decoder(QueueRecord).decode
_holder_record: Final = msgspec.msgpack.Decoder(HolderRecord).decode
lock_record: Final = msgspec.msgpack.Decoder(LockRecord).decode
_receipt: Final = msgspec.msgpack.Decoder(Receipt).decode
counts: Final = msgspec.msgpack.Decoder(Counts).decode
schedule: Final = msgspec.msgpack.Decoder(Schedule).decode
_server: Final = msgspec.msgpack.Decoder(ServerRecord).decode
moved: Final = msgspec.msgpack.Decoder(Moved).decode
unpacked: Final = msgspec.msgpack.Decoder(Unpacked).decode
timings: Final = msgspec.msgpack.Decoder(list[Timing]).decode
_audit_entry: Final = msgspec.msgpack.Decoder(AuditEntry).decode


def holder_record(value: bytes) -> HolderRecord:
    """Return who holds a unique key."""
    found = _holder_record(value)
    _check_ids(found.job_id)
    return found


def receipt(value: bytes) -> Receipt:
    """Return what a request was answered."""
    found = _receipt(value)
    _check_ids(*(job_id for job_id, _ in found.claimed or ()))
    return found


def server(value: bytes) -> ServerRecord:
    """Return a server."""
    found = _server(value)
    _check_times(found.started_at, found.seen_at)
    return found


def audit_entry(value: bytes) -> AuditEntry:
    """Return what a person did."""
    found = _audit_entry(value)
    _check_times(found.at)
    return found


def _check_ids(*ids: str) -> None:
    for job_id in ids:
        if not keys.is_id(job_id):
            message = f"{shown(job_id)} is no job id"
            raise ValueError(message)


def _check_times(*times: datetime) -> None:
    if any(at.tzinfo is None for at in times):
        message = "a time has no time zone"
        raise ValueError(message)
