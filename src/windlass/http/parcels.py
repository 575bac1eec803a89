"""Parcels as callers send them become parcels as stores take them: what is kept for good is looked at first."""

from datetime import datetime
from typing import Any, Final

from msgspec import UnsetType

from windlass.api.jobs import Job, job_of
from windlass.api.moving import Parcel, check_once, checked_keys
from windlass.core import job as core
from windlass.core import moving
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.ids import job_id
from windlass.core.names import (
    HISTORY_KEPT,
    LOG_LINES_KEPT,
    MAX_ATTEMPTS,
    check_header,
    check_max_attempts,
    check_name,
    check_priority,
)
from windlass.core.states import State

_WAITING: Final = frozenset({State.PENDING, State.SCHEDULED})
_NAMES: Final = ("kind", "tenant", "result_codec", "unique_key", "schedule_id", "limit_key")


def parcel_of(asked: Parcel) -> moving.Parcel:
    """Return a parcel that can be unpacked, or raise `InvalidValue` for the first thing in it that cannot be."""
    queue = check_name(asked.queue, "queue")
    jobs = [_job(each, queue) for each in asked.jobs]
    ids = [job.id for job in jobs]
    check_once(ids, "job")
    keys = checked_keys(asked.keys)
    if strangers := {key.job_id for key in keys}.difference(ids):
        message = f"a key is held by job {min(strangers)}, which is not in the parcel: send the keys of its jobs alone"
        raise InvalidValue(message)
    return moving.Parcel(check_name(asked.move, "move"), queue, asked.number, moving.Packed(jobs, keys))


def _job(asked: Job, queue: str) -> core.Job:
    if not isinstance(asked.payload, UnsetType) or not isinstance(asked.result, UnsetType):
        message = "in a parcel payloads and results are bytes: send `payload_base64` and `result_base64`"
        raise InvalidValue(message)
    job = job_of(asked)
    if job.queue != queue or job.state not in _WAITING:
        message = f"a parcel has waiting jobs of its queue alone, and job {job.id[:40]} is {job.state} in {job.queue!r}"
        raise InvalidValue(message)
    _check(job)
    return _in_one_form(job)._replace(
        history=tuple(map(_delivery, job.history[-HISTORY_KEPT:])),
        log=tuple(line._replace(at=moment(line.at, "at")) for line in job.log[-LOG_LINES_KEPT:]),
    )


def _check(job: core.Job) -> None:
    check_priority(job.priority)
    check_max_attempts(job.max_attempts)
    if not (0 <= job.attempt <= MAX_ATTEMPTS and 0 <= job.delivery <= MAX_ATTEMPTS):
        message = f"attempt and delivery are counted from 0 to {MAX_ATTEMPTS:,}"
        raise InvalidValue(message)
    check_name(job.codec, "codec")
    for what in _NAMES:
        if (name := getattr(job, what)) is not None:
            check_name(name, what.replace("_", " "))
    for name, value in job.headers.items():
        check_header(name, value)


def _in_one_form(job: core.Job) -> core.Job:
    """Return the job with times in UTC, and with ids as stores write them."""
    given = job._asdict()
    checked: dict[str, Any] = {name: _moment(given[name], name) for name in core.TIME_FIELDS}
    checked |= {name: None if given[name] is None else job_id(given[name]) for name in core.ID_FIELDS}
    return job._replace(**checked)


def _moment(at: datetime | None, what: str) -> datetime | None:
    return None if at is None else moment(at, what)


def _delivery(ended: core.Delivery) -> core.Delivery:
    return ended._replace(
        started_at=moment(ended.started_at, "started_at"),
        ended_at=_moment(ended.ended_at, "ended_at"),
        retried_at=_moment(ended.retried_at, "retried_at"),
    )
