"""Stored job records, read one by one: a damaged one is read field by field, and spoils no other."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from windlass.core.errors import IdConflict, StoreCorrupt, UniqueConflict, WindlassError
from windlass.core.job import Delivery, Job
from windlass.core.schedule import Schedule
from windlass.kit.damage import (
    DECODE_ERRORS,
    MISSING,
    NO_NAME,
    Unreadable,
    dead_reason,
    read_damaged_job,
    read_damaged_schedule,
    shown,
)
from windlass.kit.records import whole_history
from windlass.stores.redis.replies import (
    MOST_EXACT,
    NO_MORE,
    DeliveryRow,
    LogRow,
    More,
    ScheduleRecord,
    damaged,
    delivery_of,
    log_line_of,
)
from windlass.stores.redis.requests import Ask

R = TypeVar("R")

FramedRow: TypeAlias = tuple[str, bytes | None]
"""The id of a job and its packed row; no row where the script could not read the record."""

_EXACT: Final = ("seq", "priority", "max_attempts", "attempt", "delivery")
_OF_FIVE, _OF_SIX = b"\x95", b"\x96"
"""Begin a claim and a head, which are kept without."""


class StoredRecord(NamedTuple):
    """A stored job, as `records.lua` gives it: nothing of it was unpacked."""

    queue: bytes | None
    seq: str | None
    state: str | None
    lease: str | None
    fields: list[bytes] | None
    history: list[bytes] | None
    log: list[bytes] | None


_records = msgspec.msgpack.Decoder(list[StoredRecord | None])
_values = msgspec.msgpack.Decoder(list[msgspec.Raw])
_delivery = msgspec.msgpack.Decoder(DeliveryRow)
_line = msgspec.msgpack.Decoder(LogRow)
_decode = msgspec.msgpack.Decoder().decode


class StoredJobs:
    """Reads the rows of jobs under one prefix."""

    def __init__(self, look: Callable[[str, Ask], Awaitable[bytes]]) -> None:
        """Read records through `look`, which runs a script by its name."""
        self._look = look

    async def read(self, rows: Sequence[FramedRow], job_of: Callable[[bytes], Job]) -> list[Job]:
        """Return the jobs of rows; a damaged one that is gone meanwhile is left out."""
        return [job for job in await self.read_all(rows, job_of) if job is not None]

    async def read_all(self, rows: Sequence[FramedRow | None], job_of: Callable[[bytes], Job]) -> list[Job | None]:
        """Return the jobs of rows, and None for each row that is None or a damaged one that is gone meanwhile."""
        jobs: dict[str, Job] = {}
        damaged: list[str] = []
        for job_id, row in filter(None, rows):
            job = None if row is None else decoded(row, job_of)
            if job is None:
                damaged.append(job_id)
            else:
                jobs[job_id] = job
        if damaged:
            jobs |= await self.damaged(damaged)
        return [None if row is None else jobs.get(row[0]) for row in rows]

    async def error(self, job_id: str, why: str, *, also: str = "") -> StoreCorrupt:
        """Return the error for a call on a damaged job: it names the fields, or says what a script said."""
        found = await self.damaged([job_id])
        damage = found[job_id].damage if job_id in found else None
        return damaged(job_id, why if damage is None else f"{damage}; {why}", also=also)

    async def refusal(self, *answer: Any) -> WindlassError:  # noqa: ANN401 - as the script has it
        """Return why nothing was written: something is damaged, or an id or a key refuses what is to be enqueued."""
        match answer:
            case (why,):
                return StoreCorrupt(
                    f"nothing was enqueued, since {why}: repair the Redis key of this name, or delete it"
                )
            case (job_id, why):
                return await self.error(job_id, why)
            case (job_id, queue, kind, tenant):
                # of what is none the scripts make an empty text
                return IdConflict(job_id, queue, kind or None, tenant or None)
            case _:
                return UniqueConflict(*answer)

    async def damaged(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return by id what can be read of jobs."""
        records = _records.decode(await self._look("records", {"ids": list(ids)}))
        return {
            job_id: damaged_job_of(job_id, record)
            for job_id, record in zip(ids, records, strict=True)
            if record is not None
        }


def decoded(row: bytes, make: Callable[[bytes], R]) -> R | None:
    """Return what `make` decodes from a row, or None where the row is damaged."""
    try:
        return make(row)
    except DECODE_ERRORS:
        return None


def damaged_job_of(job_id: str, record: StoredRecord) -> Job:
    """Return what can be read of a stored record."""
    damage: list[str] = []
    seq = _score(record.seq)
    values: dict[str, Any] = {
        "id": job_id,
        "seq": 0 if seq is None else seq,
        "queue": _text(record.queue) or MISSING,
    }
    if record.fields is None:
        damage.append(f"job|{job_id} is not a hash")
        values |= _of_head(None) | {
            "payload": b"",
            "codec": "raw",
            "state": record.state or "pending",
            "attempt": 0,
            "delivery": 0,
        }
        values |= {"headers": {}, "lease_expires_at": _score(record.lease), "cancel_requested": 0}
    else:
        names = (each.decode(errors="replace") for each in record.fields[::2])
        values |= _of_fields(dict(zip(names, record.fields[1::2], strict=True)), damage)
        if values["state"] == "running":
            values["lease_expires_at"] = _score(record.lease)
    history = _readable("history", record.history, _history_line, damage)
    log = _readable("log", record.log, lambda line: log_line_of(_line.decode(line)), damage)
    job = read_damaged_job(values)
    if isinstance(seq, int):
        # pages go on behind the number of the line, whatever the head says
        job = job._replace(seq=seq)
    job = job._replace(
        history=whole_history(job, history), log=tuple(log), damage="; ".join([*damage, *filter(None, [job.damage])])
    )
    if record.fields is None and record.state == "dead":
        # such a job was set aside, and its key has no room for the reason
        job = job._replace(last_error=dead_reason(job.damage or ""))
    return job._replace(damage=job.damage or None)


def damaged_schedule_of(schedule_id: str, stored: list[bytes] | None) -> Schedule:
    """Return what can be read of a stored schedule."""
    fields = dict(
        zip((name.decode(errors="replace") for name in (stored or [])[::2]), (stored or [])[1::2], strict=True)
    )
    damage: list[str] = []
    record = _unpacked("record", fields.get("record"), len(ScheduleRecord._fields), damage)
    values: dict[str, Any] = {"id": schedule_id, "codec": "raw", "priority": 0, "max_attempts": 1, "payload": b""}
    values |= {"rule": NO_NAME, "timezone": "UTC", "queue": NO_NAME, "catch_up": "one"}
    if record is not None:
        values |= dict(zip(ScheduleRecord._fields, record, strict=True))
    values |= {
        "revision": _integer(fields.get("revision")),
        "overlap": _text(fields.get("overlap")),
        "declared": int("declared" in fields),
        "paused": int("paused" in fields),
        "next_run_at": _integer(fields.get("next_run_at")),
        "last_run_at": _integer(fields.get("last_run_at")),
        "last_job_id": _text(fields.get("last_job_id")),
    }
    schedule = read_damaged_schedule(values)
    return replace(
        schedule, id=schedule_id, damage="; ".join([*damage, *filter(None, [schedule.damage])]) or "is not a hash"
    )


def _of_fields(fields: dict[str, bytes], damage: list[str]) -> dict[str, Any]:
    """Return the values by the names of `Job`; what is damaged as a whole is told in `damage`."""
    head = _unpacked("head", fields.get("head"), 6, damage, begin=_OF_SIX)
    body = _unpacked("body", fields.get("body"), 2, damage)
    claim = _unpacked("claim", fields["claim"], 5, damage, begin=_OF_FIVE) if "claim" in fields else None
    more = _unpacked("more", fields["more"], 5, damage) if "more" in fields else None
    if claim is not None and not isinstance(claim[0], str | None):
        damage.append(f"token is not a text: {shown(claim[0])}")
        claim = None
    if "hold" in fields:
        _unpacked("hold", fields["hold"], 7, damage)
    found = _of_head(head)
    found["codec"], found["payload"] = body or ("raw", b"")
    _, found["attempt"], found["delivery"], found["claimed_at"], found["worker"] = claim or (None, 0, 0, None, None)
    found |= dict(zip(More._fields, more or NO_MORE, strict=True))
    if found["headers"] is None:
        found["headers"] = MISSING
    for name in _EXACT:
        value = found.get(name)
        if isinstance(value, int) and abs(value) > MOST_EXACT:
            found[name] = Unreadable(f"is out of range: {value}")
    found |= {
        "state": _text(fields.get("state", b"pending")),
        "run_at": _integer(fields["run_at"]) if "run_at" in fields else found["created_at"],
        "finished_at": _integer(fields.get("finished_at")),
        "last_error": _text(fields.get("error")),
        "result": fields.get("result"),
        "result_codec": _text(fields.get("result_codec")),
        "progress": _value(fields["progress"]) if "progress" in fields else None,
        "cancel_requested": int(fields.get("cancel") == b"1"),
        "unique_key": _text(fields.get("key")),
    }
    return found


def _of_head(head: Sequence[Any] | None) -> dict[str, Any]:
    if head is None:
        # the line where the job stands tells its number and queue
        return {"kind": None, "priority": 0, "max_attempts": 0, "created_at": 0, "run_at": 0}
    found = dict(zip(("seq", "queue", "kind", "priority", "max_attempts", "created_at"), head, strict=True))
    # a job without a kind has an empty one here
    return found | {"kind": MISSING if found["kind"] is None else found["kind"] or None}


def _unpacked(name: str, packed: bytes | None, size: int, damage: list[str], *, begin: bytes = b"") -> list[Any] | None:
    """Return the values of a packed field, or None where it is damaged as a whole."""
    if packed is None:
        damage.append(f"{name} is missing")
        return None
    try:
        values = _values.decode(begin + packed)
    except DECODE_ERRORS:
        damage.append(f"{name} cannot be unpacked")
        return None
    if len(values) != size:
        damage.append(f"{name} has {len(values)} values instead of {size}")
        return None
    return [_value(each) for each in values]


def _value(packed: bytes | msgspec.Raw) -> object:
    try:
        return _decode(packed)
    except UnicodeError:
        return Unreadable("is not UTF-8")
    except DECODE_ERRORS:
        return Unreadable("cannot be unpacked")


def _text(stored: bytes | None) -> str | Unreadable | None:
    try:
        return None if stored is None else stored.decode()
    except UnicodeError:
        return Unreadable("is not UTF-8")


def _integer(stored: bytes | None) -> int | Unreadable | None:
    try:
        return None if stored is None else int(stored)
    except ValueError:
        return Unreadable(f"is not an integer: {shown(stored)}")


def _score(stored: str | None) -> int | Unreadable | None:
    """Return the whole number that a place in a line is, which counts in doubles."""
    try:
        return None if stored is None else int(float(stored))
    except (ValueError, OverflowError):
        return Unreadable(f"is out of range: {stored}")


def _readable(name: str, stored: list[bytes] | None, make: Callable[[bytes], R], damage: list[str]) -> list[R]:
    """Return the entries of a list that can be read."""
    if stored is None:
        damage.append(f"{name} is not a list")
        return []
    entries = [decoded(entry, make) for entry in stored]
    found = [entry for entry in entries if entry is not None]
    if len(found) < len(entries):
        damage.append(f"{name} has {len(entries) - len(found)} entries that cannot be read")
    return found


def _history_line(entry: bytes) -> Delivery:
    return delivery_of(_delivery.decode(entry))
