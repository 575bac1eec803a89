"""A `NewJob` as callers write it becomes a `PreparedJob` as stores take it: checked, encoded, with id and defaults."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from windlass.codec import RAW, Codec, Encoded, decode, encode
from windlass.core.clock import Clock, Rng
from windlass.core.duration import Duration, duration, moment, to_millis
from windlass.core.errors import InvalidValue, PayloadTooLarge
from windlass.core.ids import ID_BYTES, JobId, job_id, new_id, new_ids
from windlass.core.job import NO_HEADERS, NewJob, PreparedJob
from windlass.core.names import (
    check_header,
    check_key,
    check_max_attempts,
    check_name,
    check_priority,
    check_value,
)
from windlass.core.settings import Settings
from windlass.core.unique import Hold, Unique, hold

NO_KV: Final[Mapping[bytes, bytes | None]] = {}


class Preparer:
    """Prepares jobs with the settings of one client; refuses bad ones before anything is written."""

    def __init__(self, settings: Settings, codec: Codec, *, clock: Clock, rng: Rng) -> None:
        """Take the defaults from `settings`, the ids' time and chance from `clock` and `rng`."""
        self._settings = settings
        self._codec = codec
        self._clock = clock
        self._rng = rng
        self._most = settings.max_payload

    def prepare(self, jobs: Iterable[NewJob], parent_id: JobId | None = None) -> list[PreparedJob]:
        """Return all of `jobs` in their order, or raise for the first that cannot be enqueued."""
        wanted = jobs if isinstance(jobs, (list, tuple)) else _listed(jobs)
        ids = self._ids(len(wanted))
        return [self._one(job, made_id, parent_id) for job, made_id in zip(wanted, ids, strict=True)]

    def one(self, job: NewJob) -> PreparedJob:
        """Return a single job."""
        millis = to_millis(self._clock.now())
        return self._one(job, new_id(millis=millis, randomness=self._rng.token_bytes(ID_BYTES)), None)

    def new_id(self) -> JobId:
        """Make the id of a job."""
        return self._ids(1)[0]

    def encode(self, value: object, what: str) -> tuple[bytes, str]:
        """Return a payload or a result as bytes within the limit, and the name of its codec."""
        if isinstance(value, bytes):
            data, codec = value, RAW
        else:
            data, codec = encode(value, self._codec)
        if len(data) > self._most:
            raise PayloadTooLarge(what, len(data), self._most)
        return data, codec

    def decode(self, encoded: Encoded) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the value that was encoded; raises `DecodeError`."""
        return decode(encoded.data, encoded.codec, self._codec)

    def _ids(self, count: int) -> list[JobId]:
        millis = to_millis(self._clock.now())
        return new_ids(count, millis=millis, randomness=self._rng.token_bytes(ID_BYTES * count))

    def _one(self, job: NewJob, made_id: JobId, parent_id: JobId | None) -> PreparedJob:
        if not isinstance(job, NewJob):
            message = f"a job to be enqueued is a NewJob, not {type(job).__name__}"
            raise InvalidValue(message)
        queue, payload, given_id, kind, priority, run_at, delay, max_attempts, unique, headers, tenant, kv = job
        check_name(queue, "queue")
        settings = self._settings.of(queue)
        if isinstance(payload, bytes) and len(payload) <= self._most:
            data, codec = payload, RAW
        else:
            data, codec = self.encode(payload, "payload")
        if kind is not None:
            check_name(kind, "kind")
        if tenant is not None:
            check_name(tenant, "tenant")
        at, after = _NOW if run_at is None and delay is None else _when(run_at, delay)
        return PreparedJob(
            made_id if given_id is None else job_id(given_id),
            queue,
            kind,
            data,
            codec,
            NO_HEADERS if headers is None else _checked_headers(headers),
            tenant,
            settings.priority if priority is None else check_priority(priority),
            settings.max_attempts if max_attempts is None else check_max_attempts(max_attempts),
            at,
            after,
            None if unique is None else _hold(unique, job, data),
            NO_KV if kv is None else checked_kv(kv),
            parent_id,
        )


_NOW: Final[tuple[datetime | None, timedelta | None]] = (None, None)


def checked_kv(kv: Mapping[bytes | str, bytes | None]) -> Mapping[bytes, bytes | None]:
    """Return kv writes as stores take them; a value of None deletes."""
    if not isinstance(kv, Mapping):
        message = f"kv is a mapping of keys to bytes, not {type(kv).__name__}"
        raise InvalidValue(message)
    return {check_key(key): None if value is None else check_value(value) for key, value in kv.items()}


def _listed(jobs: Iterable[NewJob]) -> Sequence[NewJob]:
    try:
        return list(jobs)
    except TypeError:
        message = f"jobs are a list of NewJob, not {type(jobs).__name__}"
        raise InvalidValue(message) from None


def _when(run_at: datetime | None, delay: Duration | None) -> tuple[datetime | None, timedelta | None]:
    if run_at is None:
        return None, None if delay is None else duration(delay, "delay")
    if delay is not None:
        message = "give run_at or delay, not both: each says when the job may run"
        raise InvalidValue(message)
    return moment(run_at, "run_at"), None


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(headers, Mapping):
        message = f"headers are a mapping of strings to strings, not {type(headers).__name__}"
        raise InvalidValue(message)
    for key, value in headers.items():
        check_header(key, value)
    # a copy: the caller's may change while the job is on its way
    return dict(headers) or NO_HEADERS


def _hold(unique: Unique | str, job: NewJob, payload: bytes) -> Hold:
    if isinstance(unique, str):
        unique = Unique(unique)
    elif not isinstance(unique, Unique):
        message = f"unique is a key or a Unique, not {type(unique).__name__}"
        raise InvalidValue(message)
    return hold(unique, queue=job.queue, kind=job.kind, tenant=job.tenant, payload=payload)
