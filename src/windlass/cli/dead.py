"""`windlass dead`: the jobs that were given up for good, and what to do with them."""

import asyncio
from typing import Any, Final

import click

from windlass.cli.change_options import change_jobs, change_options_but_state, read_asked
from windlass.cli.job_changes import deleting, retrying
from windlass.cli.job_filter import filter_options_but_state, in_words
from windlass.cli.job_list import ENOUGH, found_jobs, look_back, page_options, print_jobs
from windlass.cli.job_shown import grouped
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.options import output_options, store_options
from windlass.cli.output import FAINT, Cell, note, print_json, print_table, room
from windlass.cli.reach import Choice, reached
from windlass.cli.times import distance
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.states import State

GROUPED: Final = 10_000
"""The most dead jobs that are looked at for groups."""
HEADS: Final = ("COUNT", "ERROR", "KINDS", "QUEUES", "NEWEST", "EXAMPLE")
NARROW_HEADS: Final = ("COUNT", "ERROR", "NEWEST")
WIDE: Final = 140
_NAMED: Final = 3


@click.group(cls=DefaultGroup, default="list")
def dead() -> None:
    """See the dead jobs, retry or delete them.

    A job is dead when its attempts are used up, or when it can never be done. Without a command they are listed, those
    that were enqueued last first.
    """


@dead.command("list")
@click.option("--group", is_flag=True, help="Count them by what ended them, over up to 10,000 of the newest.")
@filter_options_but_state
@page_options
@store_options
@output_options
def list_(
    *,
    group: bool,
    app: str | None,
    url: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
    **chosen: Any,  # noqa: ANN401 - the fields of `JobFilter`
) -> None:
    """List dead jobs, or what ended them.

    \b
        windlass dead --group --url sqlite:///jobs.db
        windlass dead --kind send_welcome --since 1d --url sqlite:///jobs.db
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    wanted = JobFilter(state=State.DEAD, **chosen)
    if group and before is not None:
        message = "--group counts from the newest on: leave --before out"
        raise click.UsageError(message)
    if group:
        asyncio.run(_group(Choice(app, url), wanted, limit=limit, as_json=as_json))
        return
    found = asyncio.run(found_jobs(Choice(app, url), wanted, limit=limit, before=before))
    nothing = "no dead job matches" if len(in_words(wanted)) > 1 else "no dead jobs here"
    print_jobs(found, limit=limit, as_json=as_json, nothing=nothing)


@dead.command()
@change_options_but_state
def retry(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Give dead jobs a full new budget of attempts, pending now.

    By ids, or by a filter, as `windlass jobs retry`; --all means all dead jobs.
    """
    change_jobs(read_asked(given, State.DEAD), retrying())


@dead.command()
@change_options_but_state
def delete(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Delete dead jobs with their history and log.

    By ids, or by a filter, as `windlass jobs retry`; --all means all dead jobs.
    """
    change_jobs(read_asked(given, State.DEAD), deleting())


async def _group(choice: Choice, wanted: JobFilter, *, limit: int, as_json: bool) -> None:
    async with reached(choice) as (client, _):
        jobs, following = await look_back(client, wanted, limit=GROUPED, before=None, seconds=ENOUGH)
        now = client.clock.now()
    groups = grouped(jobs)
    if as_json:
        told = [_document(error, each) for error, each in groups[:limit]]
        print_json({"groups": told, "counted": len(jobs), "all": following is None})
        return
    if not groups:
        note("no dead jobs here" if following is None else "no dead job among those that were looked at")
        return
    rows = [
        [
            Cell(f"{len(each):,}"),
            Cell(error, below=f"{_names(each, 'kind')} in {_names(each, 'queue')}"),
            Cell(_names(each, "kind")),
            Cell(_names(each, "queue")),
            Cell(distance(max(job.finished_at or job.created_at for job in each), now)),
            Cell(each[0].id, FAINT),
        ]
        for error, each in groups[:limit]
    ]
    _print_groups(rows)
    if following is not None:
        note(f"counted over the newest {len(jobs):,} of them")


def _print_groups(rows: list[list[Cell]]) -> None:
    if room() < WIDE:
        print_table(NARROW_HEADS, [[row[0], row[1], row[4]] for row in rows], folds=["ERROR"], numbers=["COUNT"])
    else:
        flat = [[row[0], Cell(row[1].text), *row[2:]] for row in rows]
        print_table(HEADS, flat, folds=["ERROR", "KINDS", "QUEUES"], numbers=["COUNT"])


def _names(jobs: list[Job], what: str) -> str:
    names = sorted({getattr(job, what) or "(raw)" for job in jobs})
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _document(error: str, jobs: list[Job]) -> dict[str, Any]:
    return {
        "error": error,
        "count": len(jobs),
        "kinds": sorted({job.kind for job in jobs if job.kind is not None}),
        "queues": sorted({job.queue for job in jobs}),
        "newest_at": max(job.finished_at or job.created_at for job in jobs),
        "example": jobs[0].id,
    }
