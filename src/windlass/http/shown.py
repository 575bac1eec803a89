"""Jobs and schedules as those see them who only look: what is secret is hidden."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from windlass.api.jobs import JSON, Job, told
from windlass.api.roles import Role
from windlass.config.carried import is_structured, may_hold_secrets
from windlass.config.hidden import hidden_headers, json_with_hidden
from windlass.config.masked import HIDDEN
from windlass.core import job as core
from windlass.core.schedule import Schedule
from windlass.handlers.secret_paths import HEADER, secret_headers
from windlass.http.auth import Identity

READERS: Final = frozenset({Role.PRODUCE, Role.WORK, Role.ADMIN})
"""Who has to see payloads and results as they are: those who make them."""
_WRITERS: Final = READERS | {Role.OPERATE}
"""Who has to see schedules as they are: those who write them back with another rule, or paused."""


def reads_payloads(identity: Identity) -> bool:
    """Whether somebody sees payloads and results as they are."""
    return not identity.roles.isdisjoint(READERS)


def shown(job: core.Job, identity: Identity, *, as_bytes: bool) -> Job:
    """Return a job as it is told to somebody."""
    if not reads_payloads(identity):
        job = job._replace(
            payload=_hidden_payload(job),
            result=_hidden_result(job),
            headers=hidden_headers(job.headers),
        )
    return told(job, as_bytes=as_bytes)


def still_found(job: core.Job, text: str) -> bool:
    """Whether a text is in the payload of a job as it is told to those who only look.

    It takes as long whatever is hidden there: by a text and a clock nobody finds out what that is.
    """
    return text.encode() in _hidden_payload(job)


def shown_schedule(schedule: Schedule, identity: Identity) -> Schedule:
    """Return a schedule as it is told to somebody."""
    return schedule if not identity.roles.isdisjoint(_WRITERS) else hidden_schedule(schedule)


def hidden_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule with what is secret hidden."""
    return replace(schedule, payload=_hidden_payload(schedule), headers=hidden_headers(schedule.headers))


def _hidden_payload(found: core.Job | Schedule) -> bytes:
    # what has secret fields is JSON, whatever its maker calls it; and what looks like it may have some
    headers = secret_headers(found.headers, found.damage)
    if found.codec != JSON and HEADER not in headers and not is_structured(found.payload):
        return found.payload
    return _rewritten(found.payload, headers)


def _hidden_result(job: core.Job) -> bytes | None:
    if job.result is None or (job.result_codec != JSON and not is_structured(job.result)):
        return job.result
    return _rewritten(job.result, {})


def _rewritten(data: bytes, headers: Mapping[str, str]) -> bytes:
    """Return JSON without its secrets, of which `headers` may tell some."""
    tells = HEADER in headers
    if not tells and not may_hold_secrets(data):
        # without such a word anywhere no name in it has one
        return data
    try:
        # written anew even where nothing was hidden: of a name that is there twice only the last was looked at
        return json_with_hidden(data, headers)
    except RecursionError:
        # nobody has looked through all of it
        return msgspec.json.encode(HIDDEN)
    except (msgspec.MsgspecError, ValueError):
        return msgspec.json.encode(HIDDEN) if tells or is_structured(data) else data
