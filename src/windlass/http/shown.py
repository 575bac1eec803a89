"""Jobs and schedules as those see them who only look: what is secret is hidden."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from windlass.api.jobs import JSON, Job, told
from windlass.api.roles import Role
from windlass.config.hidden import hidden, hidden_headers, hidden_payload
from windlass.core import job as core
from windlass.core.schedule import Schedule
from windlass.handlers.secret_paths import HEADER
from windlass.http.auth import Identity

READERS: Final = frozenset({Role.PRODUCE, Role.WORK, Role.ADMIN})
"""Who has to see payloads and results as they are: those who make them."""
_WRITERS: Final = READERS | {Role.OPERATE}
"""Who has to see schedules as they are: those who write them back with another rule, or paused."""


def shown(job: core.Job, identity: Identity, *, as_bytes: bool) -> Job:
    """Return a job as it is told to somebody."""
    if identity.roles.isdisjoint(READERS):
        job = job._replace(
            payload=_hidden_payload(job),
            result=_hidden_result(job),
            headers=hidden_headers(job.headers),
        )
    return told(job, as_bytes=as_bytes)


def shown_schedule(schedule: Schedule, identity: Identity) -> Schedule:
    """Return a schedule as it is told to somebody."""
    if not identity.roles.isdisjoint(_WRITERS):
        return schedule
    return replace(schedule, payload=_hidden_payload(schedule), headers=hidden_headers(schedule.headers))


def _hidden_payload(found: core.Job | Schedule) -> bytes:
    # what has secret fields is JSON, whatever its maker calls it
    if found.codec != JSON and HEADER not in found.headers:
        return found.payload
    return _rewritten(found.payload, lambda value: hidden_payload(value, found.headers))


def _hidden_result(job: core.Job) -> bytes | None:
    return job.result if job.result is None or job.result_codec != JSON else _rewritten(job.result, hidden)


def _rewritten(data: bytes, hide: Callable[[object], object]) -> bytes:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return data
    masked = hide(value)
    return data if masked == value else msgspec.json.encode(masked)
