"""`windlass dead`: the jobs that were given up for good, and what to do with them."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from windlass.cli.change_options import change_jobs, change_options_but_state, read_asked
from windlass.cli.job_changes import deleting, retrying
from windlass.cli.job_filter import filter_options_but_state, in_words
from windlass.cli.job_list import found_dead, page_options, print_jobs
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import FAINT, Cell, note, print_json, print_table, room
from windlass.cli.reach import Choice, looked_at
from windlass.cli.times import distance
from windlass.client.error_groups import ErrorGroup
from windlass.client.group_look import look_at_groups
from windlass.client.look_back import ENOUGH, matching
from windlass.core.filters import JobFilter
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

    A job is dead when its attempts are used up, or when it can never be done. Without a command they are listed, the
    last to die first.
    """


@dead.command("list")
@click.option("--group", is_flag=True, help="Count them by what ended them, over up to 10,000 of the newest.")
@filter_options_but_state
@page_options
@store_argument
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
    """List dead jobs, the last to die first, or what ended them.

    With a filter other than --queue, each list has the jobs that match among those that were enqueued last, in that
    order.

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
    found = asyncio.run(found_dead(Choice(app, url), wanted, limit=limit, before=before))
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
    async with looked_at(choice) as (client, *_):
        step = matching(client.store, wanted)
        looked, following = await look_at_groups(step, most=GROUPED, clock=client.clock, seconds=ENOUGH)
        now = client.clock.now()
    groups = looked.in_order()[:limit]
    if as_json:
        print_json({"groups": list(map(_document, groups)), "counted": looked.count, "all": following is None})
        return
    if not groups:
        note("no dead jobs here" if following is None else "no dead job among those that were looked at")
        return
    _print_groups([_row(group, now) for group in groups])
    if following is not None:
        note(f"counted over the newest {looked.count:,} of them")


def _row(group: ErrorGroup, now: datetime) -> list[Cell]:
    kinds, queues = _names(group.kind_names), _names(sorted(group.queues))
    return [
        Cell(f"{group.count:,}"),
        Cell(group.name, below=f"{kinds} in {queues}"),
        Cell(kinds),
        Cell(queues),
        Cell(distance(group.last_at, now)),
        Cell(group.example.id, FAINT),
    ]


def _print_groups(rows: list[list[Cell]]) -> None:
    if room() < WIDE:
        print_table(NARROW_HEADS, [[row[0], row[1], row[4]] for row in rows], folds=["ERROR"], numbers=["COUNT"])
    else:
        flat = [[row[0], Cell(row[1].text), *row[2:]] for row in rows]
        print_table(HEADS, flat, folds=["ERROR", "KINDS", "QUEUES"], numbers=["COUNT"])


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _document(group: ErrorGroup) -> dict[str, Any]:
    return {
        "error": group.name,
        "count": group.count,
        "kinds": sorted(kind for kind in group.kinds if kind is not None),
        "queues": sorted(group.queues),
        "newest_at": group.last_at,
        "example": group.example.id,
    }
