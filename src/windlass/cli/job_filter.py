"""Which jobs are meant, as it is written on the command line."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import click

from windlass.cli.complete_names import complete_kinds, complete_queues
from windlass.cli.moment import read_past
from windlass.core.filters import JobFilter
from windlass.core.states import State

F = TypeVar("F", bound=Callable[..., Any])


def _read_text(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse a text that everything has: it was probably a variable of a script, and not set."""
    if value is not None and not value.strip():
        message = "it is empty, which every job would match: leave it out"
        raise click.BadParameter(message, ctx, param)
    return value


_WITHOUT_STATE: Final[Sequence[Callable[[Any], Any]]] = (
    click.option("--queue", metavar="QUEUE", shell_complete=complete_queues, help="Of this queue."),
    click.option("--kind", metavar="KIND", shell_complete=complete_kinds, help="Of this kind."),
    click.option("--tenant", metavar="TENANT", help="Of this tenant."),
    click.option("--schedule", "schedule_id", metavar="ID", help="Made by this schedule."),
    click.option("--error", callback=_read_text, metavar="TEXT", help="With this text in the last error."),
    click.option(
        "--text",
        callback=_read_text,
        metavar="TEXT",
        help="With this text in id, kind, unique key, tenant or last error.",
    ),
    click.option("--parent", "parent_id", metavar="ID", help="Made by this job."),
    click.option("--key", "unique_key", metavar="KEY", help="With exactly this unique key."),
    click.option(
        "--error-type",
        callback=_read_text,
        metavar="TYPE",
        help="With a last error of exactly this type, as ValueError.",
    ),
    click.option("--payload-text", callback=_read_text, metavar="TEXT", help="With this text in the payload."),
    click.option("--since", callback=read_past, metavar="TIME", help="Made since then: 1h (ago), or a time."),
    click.option("--until", callback=read_past, metavar="TIME", help="Made before then: 1h (ago), or a time."),
)
_STATE: Final = click.option("--state", type=click.Choice([state.value for state in State]), help="In this state.")


def filter_options(function: F) -> F:
    """Let the user say which jobs are meant; the command gets it as the keywords of `JobFilter`."""
    return filter_options_but_state(_STATE(function))


def filter_options_but_state(function: F) -> F:
    """Let the user say which jobs are meant, where their state is known already."""
    for decorate in reversed(_WITHOUT_STATE):
        function = decorate(function)
    return function


def in_words(chosen: JobFilter) -> dict[str, str]:
    """Return what was chosen, name by name, as text."""
    return {name: _text(value) for name, value in chosen.by_field().items() if value is not None}


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)[:200]
