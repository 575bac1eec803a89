"""Stored records that cannot be read, and what can be known of them.

A job's record that does not decode is read field by field. Its place in an index, which is a key of its own, tells
queue, state and sequence number besides. The job gets a record in memory with stand-ins for what is lost, and `damage`
names that. The claim makes it dead; the bytes that were found stay under a key of their own.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, get_type_hints

import msgspec

from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.schedule import Schedule
from windlass.kit.damage import (
    DECODE_ERRORS,
    MISSING,
    DamageLog,
    Unreadable,
    is_sound,
    read_damaged_job,
    read_damaged_schedule,
    read_each,
    shown,
)
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records

R = TypeVar("R")

logger: Final = logging.getLogger("windlass.slatedb")
log: Final = DamageLog(logger)
Row: TypeAlias = tuple[bytes, bytes]

_FIELDS: Final = Record.__struct_fields__
_BESIDE_JOB: Final[dict[str, object]] = {"hold": None, "token": None, "place": 0, "details": (), "has_followers": False}
"""The fields of a record that a job does not have, with their stand-ins."""
_OPTIONAL: Final = dict(zip(_FIELDS[-len(Record.__struct_defaults__) :], Record.__struct_defaults__, strict=True))
_ABSENT: Final = {**dict.fromkeys(_FIELDS, MISSING), **_OPTIONAL}
_of_hints: Final[dict[str, Callable[[Any], object]]] = {
    field: msgspec.msgpack.Decoder(hint).decode
    for field, hint in get_type_hints(Record, include_extras=True).items()
    if field in _FIELDS
}
_decoders: Final = {**_of_hints, "log": records.log_lines}
_schedule_decoders: Final[dict[str, Callable[[Any], object]]] = {
    field: msgspec.msgpack.Decoder(hint).decode for field, hint in get_type_hints(Schedule).items()
}
_split: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_split_map: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode


class DamagedRecord(NamedTuple):
    """A record with stand-ins, and the fields that have one."""

    record: Record
    fields: Collection[str]


def read_damaged(job_id: JobId, main: bytes | None) -> DamagedRecord:
    """Return what can be read of the record of a job; None for one that is not there."""
    values, why = ({}, "is missing") if main is None else _read_fields(main)
    values.pop("damage", None)
    found_id = values.get("id", job_id)
    if not isinstance(found_id, Unreadable) and found_id != job_id:
        values["id"] = Unreadable(f"is another one: {shown(found_id)}")
    job = read_damaged_job(values)
    beside = {field: values.get(field, MISSING) for field in _BESIDE_JOB}
    lost = [(field, value.why) for field, value in beside.items() if isinstance(value, Unreadable)]
    damage = "; ".join(filter(None, [job.damage, *(f"{field} {reason}" for field, reason in lost)]))
    made: list[Any] = [
        getattr(job, field)
        if field in Job._fields
        else _BESIDE_JOB[field]
        if isinstance(beside[field], Unreadable)
        else beside[field]
        for field in _FIELDS
    ]
    record = Record(*made)
    record.id, record.damage = job_id, f"the record {why}" if why else damage or "the record cannot be read"
    return DamagedRecord(record, {field for field in _FIELDS if isinstance(values.get(field, MISSING), Unreadable)})


def _read_fields(main: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the values of a record by field; and why there are none, where that is so."""
    try:
        raw = _split(memoryview(main)[1:])
    except DECODE_ERRORS as error:
        return {}, f"cannot be read ({error})"
    return {
        **dict.fromkeys(_FIELDS, MISSING),
        **_OPTIONAL,
        **_fields_of(dict(zip(_FIELDS, raw, strict=False)), _decoders),
    }, None


def fit(found: DamagedRecord, place: bytes) -> None:
    """Let a record say of its job what the key of its place says; where it said something else, that is damage."""
    record, fields = found
    reasons = [] if record.damage is None else [record.damage]
    for field, value in keys.job_fields(place).items():
        said = getattr(record, field)
        if said != value:
            setattr(record, field, value)
            if field not in fields:
                reasons.append(f"{field} is {shown(said)}, but {shown(value)} in the index")
    record.damage = "; ".join(reasons) or "the record does not fit the place of its job"


def is_damaged(record: Record) -> StoreCorrupt:
    """Return the error of a call that cannot be done with a damaged record."""
    return StoreCorrupt(f"the record of job {record.id} is damaged: {record.damage}", job_id=record.id)


def decoded(decode: Callable[[bytes], R], value: bytes, what: str, then: str) -> R | None:
    """Return a record that is none of a job; None where it cannot be read, and the log says what becomes of it."""
    try:
        return decode(value)
    except DECODE_ERRORS as error:
        message = f"{what} cannot be read ({error}): {then}"
        log.log("%s", message)
        return None


def free_if_damaged(decode: Callable[[bytes], R], value: bytes, what: str) -> R | None:
    """Return the holder of something; None where its record cannot be read, since it could never be released."""
    return decoded(decode, value, f"who holds {what}", "it is free from now on")


def read_rows(rows: Iterable[Row], read: Callable[[bytes, bytes], R], what: str) -> list[R]:
    """Return what these rows of a database tell; those that cannot be read are left out, and the log names them."""
    message = f"{what} cannot be read and is left out: %s"
    return read_each(rows, lambda row: read(*row), lambda why: log.log(message, why))


def read_schedule(key: bytes, value: bytes) -> Schedule:
    """Return a schedule; a damaged one has stand-ins, and says so by its `damage`."""
    try:
        schedule = records.schedule(value)
        _check_schedule(schedule, keys.name_of(key))
    except DECODE_ERRORS as error:
        return _read_damaged_schedule(key, value, error)
    return schedule


def _check_schedule(schedule: Schedule, schedule_id: str) -> None:
    """Raise `ValueError` for values that could be decoded, and would fail wherever they are used."""
    times = schedule.next_run_at, schedule.last_run_at
    if schedule.id != schedule_id or any(at is not None and at.tzinfo is None for at in times):
        message = "it is of another schedule, or has a time without a time zone"
        raise ValueError(message)
    last = schedule.last_job_id
    if not is_sound(schedule) or (last is not None and not keys.is_id(last)):
        message = "it has a value that no schedule is written with"
        raise ValueError(message)


def _read_damaged_schedule(key: bytes, value: bytes, error: Exception) -> Schedule:
    try:
        stored = _fields_of(_split_map(value), _schedule_decoders)
    except DECODE_ERRORS:
        stored = {}
    schedule = read_damaged_schedule(stored | {"id": keys.name_of(key)})
    return schedule if schedule.damage is not None else replace(schedule, damage=str(error))


def _fields_of(stored: Mapping[str, msgspec.Raw], decoders: Mapping[str, Callable[[Any], object]]) -> dict[str, Any]:
    """Return the values of a record by its fields."""
    values: dict[str, Any] = {}
    for field, value in stored.items():
        try:
            values[field] = decoders[field](value)
        except UnicodeDecodeError:
            values[field] = Unreadable("is not UTF-8")
        except DECODE_ERRORS as error:
            values[field] = Unreadable(f"cannot be read ({error})")
    return values
