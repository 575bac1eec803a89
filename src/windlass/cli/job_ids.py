"""Which job is meant: by its whole id, or by the beginning of it."""

import re
from typing import Final
from uuid import UUID

from windlass.client.client import Client
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId, job_id
from windlass.core.store import Store

SHORTEST: Final = 8
"""Characters that the beginning of an id has at least."""
PAGE: Final = 50_000
PAGES: Final = 20
"""How far back a beginning is looked for: a million jobs."""
NEAR: Final = 10_000
"""How many jobs on each side of where it should be are looked at first."""
_DIGITS: Final = 32
_DASHES: Final = (8, 12, 16, 20)
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},{_DIGITS}}}")


async def found_id(client: Client, text: str) -> JobId:
    """Return the id that is meant: `text` itself if it is whole, else the only one of a job here that begins so.

    Whether there is a job with a whole id is not looked at. Raises `InvalidValue` for what is no id or begins several,
    and `JobNotFound` for what begins none.
    """
    digits = text.strip().lower().replace("-", "")
    if not _BEGINNING.fullmatch(digits):
        return job_id(text.strip()) if _whole(text) else _refuse(text)
    if len(digits) == _DIGITS:
        return job_id(digits)
    found = await _beginning_with(client, _dashed(digits))
    if not found:
        raise JobNotFound(f"that begins with {_dashed(digits)}")
    if len(found) > 1:
        message = f"{text!r} is the beginning of several ids, give more of it: {', '.join(found)}"
        raise InvalidValue(message)
    return found[0]


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


async def _beginning_with(client: Client, beginning: str) -> list[JobId]:
    """Return the ids of up to two jobs that begin so: first where they should be, then among all."""
    store = client.store
    at = await _place_of(store, beginning)
    page = await store.newest(JobFilter(text=beginning), before=at + NEAR, limit=100, most=2 * NEAR)
    found = [job.id for job in page.jobs if job.id.startswith(beginning)]
    before: int | None = None
    for _ in range(0 if found else PAGES):
        page = await store.newest(JobFilter(text=beginning), before=before, limit=100, most=PAGE)
        found += [job.id for job in page.jobs if job.id.startswith(beginning)]
        before = page.next
        if before is None or len(found) > 1:
            break
    return found[:2]


async def _place_of(store: Store, beginning: str) -> int:
    """Return about which sequence number an id has that begins so: ids grow with the time of their making."""
    newest = await store.newest(JobFilter(), before=None, limit=1, most=1)
    low, high = 0, newest.jobs[0].seq if newest.jobs else 0
    while low < high:
        middle = (low + high) // 2
        after = await store.jobs(JobFilter(), after=middle, limit=1)
        if after and after[0].id < beginning:
            low = max(after[0].seq, middle + 1)
        else:
            high = middle
    return low
