"""Jobs in a list, the newest first or the last to die first, as far back as a short time allows."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import click

from windlass.cli.job_shown import HEADS, NARROW_HEADS, WIDE, document, narrow_row, row
from windlass.cli.output import note, print_json, print_table, room
from windlass.cli.reach import Choice, looked_at
from windlass.client.client import Client
from windlass.client.error_groups import died_at
from windlass.client.listing import PAGE
from windlass.client.look_back import ENOUGH, look_back, matching
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import job_id
from windlass.core.job import Job
from windlass.core.looks import DEATH, DeadJob, Death, death_of
from windlass.core.states import State

F = TypeVar("F", bound=Callable[..., Any])

_NUMBER: Final = re.compile("[0-9]{1,18}")


class Found(NamedTuple):
    """Jobs in the order of the list; `next` is the cursor to go on with, None when there are no more."""

    jobs: list[Job]
    next: int | str | None
    now: datetime
    moved: bool = False
    """Whether the store was moved, so that it takes no job."""


def page_options(function: F) -> F:
    """Let the user say how many jobs a list has, and where it begins."""
    function = click.option(
        "--before", metavar="CURSOR", help="Go on where a list ended: the cursor that it told, or the id of a job."
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


async def found_dead(choice: Choice, chosen: JobFilter, *, limit: int, before: str | None) -> Found:
    """Return up to `limit` dead jobs that match, the last to die first.

    Those of a queue or of all are found in that order. With more to match by they are found as `found_jobs` finds them,
    and only those that were found are put in order.
    """
    if chosen != JobFilter(queue=chosen.queue, state=State.DEAD):
        page = await found_jobs(choice, chosen, limit=limit, before=before)
        return page._replace(jobs=sorted(page.jobs, key=_by_death, reverse=True))
    async with looked_at(choice) as found:
        client = found.client
        at = None if before is None else await _death(client, before)
        until = client.clock.monotonic() + ENOUGH
        dead: list[DeadJob] = []
        size = 0
        # one more than is shown says whether there are more
        while len(dead) == size <= limit and (not size or client.clock.monotonic() < until):
            size = min(size + PAGE, limit + 1)
            dead += await client.store.dead(chosen.queue, before=at, limit=size - len(dead))
            at = dead[-1].death if dead else None
        shown = dead[:limit]
        following = str(shown[-1].death) if shown and len(dead) == size else None
        return Found([each.job for each in shown], following, client.clock.now(), found.moved)


def _by_death(job: Job) -> tuple[datetime, int]:
    return died_at(job), job.seq


async def _position(client: Client, text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else (await _job(client, text)).seq


async def _death(client: Client, text: str) -> Death:
    return Death.read(text) if re.fullmatch(DEATH, text) else death_of(await _job(client, text))


async def _job(client: Client, text: str) -> Job:
    try:
        wanted = job_id(text)
    except InvalidValue:
        message = f"--before takes the cursor that this list told, or the id of a job, not {text[:60]!r}"
        raise InvalidValue(message) from None
    [job] = await client.store.get((wanted,))
    if job is None:
        raise JobNotFound(wanted)
    return job


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
