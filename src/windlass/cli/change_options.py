"""What the commands that change jobs take: ids or a filter, in whose name, asked for or not."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from windlass.cli.audited import as_option
from windlass.cli.job_changes import Change, Way, change_by_filter, change_by_ids
from windlass.cli.job_filter import filter_options, filter_options_but_state
from windlass.cli.options import output_options, store_options
from windlass.cli.reach import Choice
from windlass.core.filters import JobFilter
from windlass.core.states import State

F = TypeVar("F", bound=Callable[..., Any])

_IDS: Final = click.argument("ids", nargs=-1, metavar="[ID]...")
_ALL: Final = click.option("--all", "everything", is_flag=True, help="All of them: needed where no filter is given.")
_DRY: Final = click.option("--dry-run", is_flag=True, help="Only count the jobs that match; change nothing.")
_YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")


class Asked(NamedTuple):
    """Which jobs are to be changed, and how."""

    ids: Sequence[str]
    chosen: JobFilter
    filtered: bool
    """Whether anything was said of the jobs."""
    everything: bool
    way: Way


def change_options(function: F) -> F:
    """Let the user say which jobs to change; `read_asked` reads the keywords that the command gets."""
    return _IDS(filter_options(_common(function)))


def change_options_but_state(function: F) -> F:
    """Let the user say which jobs to change, where their state is known already."""
    return _IDS(filter_options_but_state(_common(function)))


def _common(function: F) -> F:
    return _ALL(_DRY(_YES(as_option(store_options(output_options(function))))))


def read_asked(given: dict[str, Any], state: State | None = None) -> Asked:
    """Return what the keywords of a command say; with `state` of jobs in that one alone."""
    rest = dict(given)
    ids, everything = rest.pop("ids"), rest.pop("everything")
    way = Way(
        Choice(rest.pop("app"), rest.pop("url")),
        rest.pop("actor"),
        yes=rest.pop("yes"),
        dry_run=rest.pop("dry_run"),
        as_json=rest.pop("as_json"),
    )
    filtered = any(value is not None for value in rest.values())
    chosen: dict[str, Any] = {"state": state, **rest}
    return Asked(ids, JobFilter(**chosen), filtered, everything, way)


def change_jobs(asked: Asked, change: Change) -> None:
    """Change the jobs with these ids, or those that match."""
    if asked.ids and (asked.filtered or asked.everything or asked.way.dry_run):
        message = "give ids or a filter, one of both: each says which jobs are meant"
        raise click.UsageError(message)
    if not asked.ids and not asked.filtered and not asked.everything:
        message = "say which jobs are meant: ids, a filter as --queue or --error, or --all"
        raise click.UsageError(message)
    if asked.ids:
        code = change_by_ids(asked.ids, change, asked.way)
    else:
        code = change_by_filter(asked.chosen, change, asked.way)
    raise click.exceptions.Exit(code)
