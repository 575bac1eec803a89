"""Jobs on their way to or from another store, as scripts give and take them."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.job import Delivery, Job
from windlass.core.moving import HeldKey, Packed, Parcel
from windlass.core.names import HISTORY_KEPT, LOG_LINES_KEPT
from windlass.core.states import State
from windlass.kit.records import details_of, in_utf8, log_lines_of
from windlass.stores.redis.replies import DeliveryRow, DetailRow, JobRow, More, WholeRow, maybe_time, whole_job_of
from windlass.stores.redis.requests import RAW, Ask, as_text, more_of, packed_text

_more: Final = attrgetter(*More._fields)
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
    details: list[DetailRow] | None
    key: KeyRow | None


PackedJob: TypeAlias = tuple[Job, HeldKey | None]
"""A job on its way, and the key that it holds."""


class TimedRow(NamedTuple):
    """A key that time alone frees, as `timed_keys.lua` gives it."""

    name: str
    holder: str
    expires_at: int
    digest: bytes


def packed_job_of(row: PackedRow) -> PackedJob:
    """Return the job of a row, and its key."""
    job = whole_job_of(WholeRow(row.job, row.history, row.log, row.details))
    key = row.key
    if key is None:
        return job, None
    return job, HeldKey(key.name, job.id, key.until, maybe_time(key.expires_at), key.digest)


def packed_of(jobs: Sequence[PackedJob]) -> Packed:
    """Return jobs and the keys that they hold."""
    return Packed([job for job, _ in jobs], [key for _, key in jobs if key is not None])


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
        "logged": "1" if log_lines_of(job) else None,
        "details": _details(job.history),
        "more": more_of(*_more(job)),
        "key": job.unique_key if shows_key else None,
    }
    return [part for name, value in found.items() if value is not None for part in (name, value)]


def _delivery(delivery: Delivery) -> DeliveryRow | None:
    """Return how a delivery ended, if it did."""
    number, attempt, started_at, ended_at, worker, outcome, failure, _ = delivery
    if ended_at is None or outcome is None:
        return None
    told = None if failure is None else (in_utf8(failure.message), _text(failure.type), _text(failure.traceback))
    return DeliveryRow(number, attempt, to_micros(started_at), to_micros(ended_at), worker, outcome, told)


def _details(history: Sequence[Delivery]) -> msgspec.Raw | None:
    """Return what stands beside a history, as `parts/deliveries.lua` keeps it."""
    details = [
        (number, False if module is None else module, False if retried_at is None else to_micros(retried_at))
        for number, module, retried_at in details_of(history[-HISTORY_KEPT:])
    ]
    return packed_text(details) if details else None


def _text(text: str | None) -> str | None:
    return None if text is None else in_utf8(text)
