"""Which job is meant: by its whole id, or by the beginning of it."""

import re
from dataclasses import replace
from typing import Final
from uuid import UUID

from windlass.client.client import Client
from windlass.client.places import place_of
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId, job_id
from windlass.core.job import Job
from windlass.core.store import Store

SHORTEST: Final = 8
"""Characters that the beginning of an id has at least."""
PAGE: Final = 50_000
PAGES: Final = 20
"""How far back a beginning is looked for: a million jobs."""
NEAR: Final = 10_000
"""How many jobs on each side of where it should be are looked at first."""
FEW: Final = 100
"""The most jobs that one look for a beginning reads."""
WHOLE: Final = 36
"""Characters of a whole id."""
_DIGITS: Final = 32
_DASHES: Final = (8, 12, 16, 20)
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},{_DIGITS}}}")


async def found_id(client: Client, text: str) -> JobId:
    """Return the id that is meant: `text` itself if it is whole, else the only one of a job here that begins so.

    Whether there is a job with a whole id is not looked at. Raises `InvalidValue` for what is no id or begins several,
    and `JobNotFound` for what begins none.
    """
    beginning = beginning_of(text)
    if beginning is None:
        return job_id(text.strip()) if _whole(text) else _refuse(text)
    if len(beginning) == WHOLE:
        return job_id(beginning)
    found = await _beginning_with(client.store, beginning)
    if not found:
        raise JobNotFound(f"that begins with {beginning}")
    if len(found) > 1:
        message = f"{text!r} is the beginning of several ids, give more of it: {', '.join(found)}"
        raise InvalidValue(message)
    return found[0]


def beginning_of(text: str) -> str | None:
    """Return the beginning of an id that a text is, or a whole one, as ids are written; None when it is neither."""
    digits = text.strip().lower().replace("-", "")
    return _dashed(digits) if _BEGINNING.fullmatch(digits) else None


async def near_its_place(store: Store, chosen: JobFilter, beginning: str) -> list[Job]:
    """Return chosen jobs whose ids begin so, a few at most, from where they should stand.

    One whose id its maker chose stands elsewhere, and is not found.
    """
    # ids grow with the time of their making
    at = await place_of(store, lambda job: job.id < beginning)
    wanted = replace(chosen, text=beginning)
    page = await store.newest(wanted, before=at + NEAR, limit=FEW, most=2 * NEAR)
    return [job for job in page.jobs if job.id.startswith(beginning)]


def _whole(text: str) -> bool:
    try:
        UUID(text.strip())
    except ValueError:
        return False
    return True


def _refuse(text: str) -> JobId:
    message = f"a job id is a UUID, or its first {SHORTEST} characters or more, not {text[:60]!r}"
    raise InvalidValue(message)


def _dashed(digits: str) -> str:
    ends = (*_DASHES, _DIGITS)
    return "-".join(part for begin, end in zip((0, *_DASHES), ends, strict=True) if (part := digits[begin:end]))


async def _beginning_with(store: Store, beginning: str) -> list[JobId]:
    """Return the ids of up to two jobs that begin so: first where they should be, then among all."""
    found = [job.id for job in await near_its_place(store, JobFilter(), beginning)]
    before: int | None = None
    for _ in range(0 if found else PAGES):
        page = await store.newest(JobFilter(text=beginning), before=before, limit=FEW, most=PAGE)
        found += [job.id for job in page.jobs if job.id.startswith(beginning)]
        before = page.next
        if before is None or len(found) > 1:
            break
    return found[:2]
