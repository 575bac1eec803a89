"""Jobs on their way to or from another store, as scripts give and take them."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.job import Delivery, Job
from windlass.core.moving import HeldKey, Packed, Parcel
from windlass.core.names import HISTORY_KEPT, LOG_LINES_KEPT
from windlass.core.states import State
from windlass.kit.records import in_utf8
from windlass.stores.redis.replies import DeliveryRow, JobRow, WholeRow, maybe_time, whole_job_of
from windlass.stores.redis.requests import RAW, Ask, as_text, more_of, packed_text

_NEVER_REPLACED: Final = "keep"
"""What a second job would do to the key is for that one to say."""


class KeyRow(NamedTuple):
    """The key that a job holds, as `pack.lua` gives it."""

    name: str
    until: Literal["claimed", "finished", "time"]
    expires_at: int | None
    digest: bytes


class PackedRow(NamedTuple):
    """A job with its history and log, and the key that it holds."""

    job: JobRow
    history: list[DeliveryRow]
    log: list[tuple[int, str, str, int]]
    key: KeyRow | None


class TimedRow(NamedTuple):
    """A key that time alone frees, as `timed_keys.lua` gives it."""

    name: str
    holder: str
    expires_at: int
    digest: bytes


def packed_of(rows: Sequence[PackedRow]) -> Packed:
    """Return the jobs of rows, and their keys."""
    keys = [
        HeldKey(row.key.name, JobId(row.job.id), row.key.until, maybe_time(row.key.expires_at), row.key.digest)
        for row in rows
        if row.key is not None
    ]
    return Packed([whole_job_of(WholeRow(row.job, row.history, row.log)) for row in rows], keys)


def timed_of(row: TimedRow) -> HeldKey:
    """Return the key of a row."""
    return HeldKey(row.name, JobId(row.holder), "time", maybe_time(row.expires_at), row.digest)


def parcel_of(parcel: Parcel) -> Ask:
    """Return a parcel as `unpack.lua` takes it."""
    keys = {key.job_id: key for key in parcel.packed.keys}
    return {
        "move": parcel.move,
        "queue": parcel.queue,
        "number": parcel.number,
        "jobs": [_job(job, keys.get(job.id)) for job in parcel.packed.jobs],
    }


def keys_of(keys: Iterable[HeldKey]) -> list[list[object]]:
    """Return keys as `take_keys.lua` takes them, those that time frees."""
    return [
        [key.name, key.job_id, as_text(key.digest), to_micros(key.expires_at)]
        for key in keys
        if key.expires_at is not None
    ]


def _job(job: Job, key: HeldKey | None) -> Ask:
    made: Ask = {
        "id": job.id,
        "kind": job.kind or RAW,
        "body": packed_text((job.codec, job.payload)),
        "priority": job.priority,
        "max_attempts": job.max_attempts,
        "created_at": to_micros(job.created_at),
        "pending": job.state is State.PENDING,
    }
    if job.run_at != job.created_at:
        made["run_at"] = str(to_micros(job.run_at))
    if job.delivery:
        made |= {"attempt": job.attempt, "delivery": job.delivery}
    if ended := [packed_text(row) for row in map(_delivery, job.history) if row is not None]:
        made["history"] = ended[-HISTORY_KEPT:]
    if job.log:
        lines = job.log[-LOG_LINES_KEPT:]
        made["log"] = [packed_text((to_micros(at), level, in_utf8(text), number)) for at, level, text, number in lines]
    if key is not None and job.unique_key is not None:
        made["hold"] = [key.name, job.unique_key, key.until, False, _NEVER_REPLACED, False, as_text(key.digest)]
        if key.expires_at is not None:
            made["expires_at"] = to_micros(key.expires_at)
    if fields := _fields(job, shows_key=key is None):
        made["fields"] = fields
    return made


def _fields(job: Job, *, shows_key: bool) -> list[str | msgspec.Raw]:
    """Return what few jobs have, as pairs for the hash of the job; a key that it once had is only shown."""
    found: dict[str, str | msgspec.Raw | None] = {
        "error": _text(job.last_error),
        "progress": None if job.progress is None else packed_text(tuple(job.progress)),
        "cancel": "1" if job.cancel_requested else None,
        "logged": "1" if job.log else None,
        "more": more_of(job.headers, job.tenant, job.parent_id, job.schedule_id, job.limit_key),
        "key": job.unique_key if shows_key else None,
    }
    return [part for name, value in found.items() if value is not None for part in (name, value)]


def _delivery(delivery: Delivery) -> DeliveryRow | None:
    """Return how a delivery ended, if it did."""
    number, attempt, started_at, ended_at, worker, outcome, failure = delivery
    if ended_at is None or outcome is None:
        return None
    told = None if failure is None else (in_utf8(failure.message), _text(failure.type), _text(failure.traceback))
    return DeliveryRow(number, attempt, to_micros(started_at), to_micros(ended_at), worker, outcome, told)


def _text(text: str | None) -> str | None:
    return None if text is None else in_utf8(text)
