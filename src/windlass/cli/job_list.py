"""Jobs in a list, the newest first, as far back as a short time allows."""

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import click

from windlass.cli.job_shown import HEADS, NARROW_HEADS, WIDE, document, narrow_row, row
from windlass.cli.output import note, print_json, print_table, room
from windlass.cli.reach import Choice, reached
from windlass.client.client import Client
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import job_id
from windlass.core.job import Job

F = TypeVar("F", bound=Callable[..., Any])

ENOUGH: Final = 0.2
"""Seconds after which a list is shown with what was found."""
LOOKED_AT: Final = 5_000
"""Records that one step looks at."""
READ: Final = 1_000
"""The most jobs that one step reads."""
_NUMBER: Final = re.compile("[0-9]{1,18}")


class Found(NamedTuple):
    """Jobs, the newest first; `next` is where to look on, None when there are no more."""

    jobs: list[Job]
    next: int | None
    now: datetime


def page_options(function: F) -> F:
    """Let the user say how many jobs a list has, and where it begins."""
    function = click.option(
        "--before", metavar="N", help="Go on where a list ended: the number that it told, or the id of a job."
    )(function)
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=50,
        show_default=True,
        metavar="N",
        help="The most jobs to list.",
    )(function)


async def found_jobs(choice: Choice, chosen: JobFilter, *, limit: int, before: str | None) -> Found:
    """Return up to `limit` jobs that match, those that are found soon."""
    async with reached(choice) as (client, _):
        at = None if before is None else await _position(client, before)
        jobs, following = await look_back(client, chosen, limit=limit, before=at, seconds=ENOUGH)
        return Found(jobs, following, client.clock.now())


async def look_back(
    client: Client, chosen: JobFilter, *, limit: int, before: int | None, seconds: float
) -> tuple[list[Job], int | None]:
    """Return up to `limit` jobs that match, the newest first, and where to look on; it ends soon after `seconds`."""
    found: list[Job] = []
    over_at = time.monotonic() + seconds
    while True:
        most = min(limit - len(found), READ)
        page = await client.store.newest(chosen, before=before, limit=most, most=LOOKED_AT)
        found += page.jobs
        before = page.next
        if before is None or len(found) >= limit or time.monotonic() > over_at:
            return found, before


async def _position(client: Client, text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        wanted = job_id(text)
    except InvalidValue:
        message = f"--before takes the number that a list told, or the id of a job, not {text[:60]!r}"
        raise InvalidValue(message) from None
    [job] = await client.store.get((wanted,))
    if job is None:
        raise JobNotFound(wanted)
    return job.seq


def print_jobs(found: Found, *, limit: int, as_json: bool, nothing: str) -> None:
    """Show a list, and how to go on; `nothing` is said when there is none."""
    jobs, following, now = found
    if as_json:
        print_json({"jobs": [document(each) for each in jobs], "next": following})
        return
    if jobs and room() < WIDE:
        print_table(NARROW_HEADS, [narrow_row(each, now) for each in jobs], folds=["NOTE"])
    elif jobs:
        print_table(HEADS, [row(each, now) for each in jobs], folds=["QUEUE", "KIND", "NOTE"])
    elif following is None:
        note(nothing)
    if following is not None:
        stopped = "there may be more" if len(jobs) >= limit else "the time was over before all was looked at"
        note(f"{stopped}: go on with --before {following}")
