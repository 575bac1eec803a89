"""`windlass audit`: what people did."""

import asyncio
from datetime import UTC
from typing import Final

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import FAINT, STRONG, Cell, note, print_json, print_table, room
from windlass.cli.reach import Choice, looked_at
from windlass.cli.times import shown_at
from windlass.core.looks import AuditEntry

HEADS: Final = ("AT", "WHO", "DID", "TO", "DETAIL")
NARROW_HEADS: Final = ("AT", "WHO", "DID", "TO")
WIDE: Final = 120
MAX_ENTRIES: Final = 10_000


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, MAX_ENTRIES), default=50, show_default=True, metavar="N", help="The most entries."
)
@store_argument
@store_options
@output_options
def audit(*, limit: int, app: str | None, url: str | None, as_json: bool) -> None:
    """List what people did, the newest first.

    Every change by the command line and by the HTTP API is here: who, when, what, to which jobs or queues.
    """
    found = asyncio.run(_look(Choice(app, url), limit))
    entries, more = found[:limit], len(found) > limit or len(found) == MAX_ENTRIES
    if as_json:
        print_json({"entries": [each._asdict() | {"detail": dict(each.detail)} for each in entries], "more": more})
    elif not entries:
        note("nothing is written down here")
    elif room() < WIDE:
        print_table(NARROW_HEADS, [_narrow_row(each) for each in entries], folds=["WHO", "TO"])
    else:
        print_table(HEADS, [_row(each) for each in entries], folds=["WHO", "TO", "DETAIL"])
    if more and not as_json:
        note(f"there are older entries: see up to {MAX_ENTRIES:,} with --limit")


async def _look(choice: Choice, limit: int) -> list[AuditEntry]:
    async with looked_at(choice) as (client, *_):
        return await client.store.audit(limit=min(limit + 1, MAX_ENTRIES))


def _row(entry: AuditEntry) -> list[Cell]:
    return [
        Cell(shown_at(entry.at, UTC), FAINT),
        Cell(entry.actor),
        Cell(entry.action, STRONG),
        Cell(entry.target),
        Cell(_detail(entry)),
    ]


def _narrow_row(entry: AuditEntry) -> list[Cell]:
    return [
        Cell(f"{entry.at:%Y-%m-%d %H:%M:%S}", FAINT),
        Cell(entry.actor),
        Cell(entry.action, STRONG),
        Cell(entry.target, below=_detail(entry)),
    ]


def _detail(entry: AuditEntry) -> str:
    return " ".join(f"{name}={value}" for name, value in entry.detail.items())
