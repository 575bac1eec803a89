"""Jobs in a list, the newest first, as far back as a short time allows."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import click

from windlass.cli.job_shown import HEADS, NARROW_HEADS, WIDE, document, narrow_row, row
from windlass.cli.output import note, print_json, print_table, room
from windlass.cli.reach import Choice, looked_at
from windlass.client.client import Client
from windlass.client.look_back import ENOUGH, look_back, matching
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import job_id
from windlass.core.job import Job

F = TypeVar("F", bound=Callable[..., Any])

_NUMBER: Final = re.compile("[0-9]{1,18}")


class Found(NamedTuple):
    """Jobs, the newest first; `next` is where to look on, None when there are no more."""

    jobs: list[Job]
    next: int | None
    now: datetime
    moved: bool = False
    """Whether the store was moved, so that it takes no job."""


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
    async with looked_at(choice) as found:
        client = found.client
        at = None if before is None else await _position(client, before)
        step = matching(client.store, chosen)
        page = await look_back(step, limit=limit, before=at, clock=client.clock, seconds=ENOUGH)
        return Found(page.jobs, page.next, client.clock.now(), found.moved)


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
    jobs, following, now, _ = found
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
