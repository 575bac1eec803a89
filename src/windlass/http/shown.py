"""Jobs as those see them who only look: what sounds secret is hidden."""

from typing import Final

import msgspec

from windlass.api.jobs import JSON, Job, told
from windlass.api.roles import Role
from windlass.config.hidden import hidden
from windlass.core import job as core
from windlass.http.auth import Identity

READERS: Final = frozenset({Role.PRODUCE, Role.WORK, Role.ADMIN})
"""Who has to see payloads and results as they are: those who make them."""


def shown(job: core.Job, identity: Identity, *, as_bytes: bool) -> Job:
    """Return a job as it is told to somebody."""
    if identity.roles.isdisjoint(READERS):
        job = job._replace(
            payload=_hidden(job.payload, job.codec),
            result=None if job.result is None else _hidden(job.result, job.result_codec),
            headers=hidden(dict(job.headers)),
        )
    return told(job, as_bytes=as_bytes)


def _hidden(data: bytes, codec: str | None) -> bytes:
    if codec != JSON:
        return data
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return data
    masked = hidden(value)
    return data if masked == value else msgspec.json.encode(masked)
