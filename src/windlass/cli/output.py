"""What a command prints: text for people, or one JSON document for programs."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import click
import msgspec

from windlass.cli.escaped import escaped

GAP: Final = "  "
GOOD, POOR, BAD, FAINT, STRONG = "green", "yellow", "red", "dim", "bold"
"""How a text looks on a terminal: it never says more than the words do."""


class Cell(NamedTuple):
    """A text in a table; `style` shows on a terminal alone, and so does what stands `below`."""

    text: str
    style: str = ""
    below: str = ""


def print_json(value: object) -> None:
    """Print a value as one JSON document, in ASCII: no terminal and no encoding can spoil it."""
    click.echo(json.dumps(msgspec.to_builtins(value), indent=2))


def say(text: str, style: str = "") -> None:
    """Print a line of text, which may hold what somebody else wrote."""
    click.echo(_styled(escaped(text), style))


def note(text: str) -> None:
    """Tell something beside the result, which is all that stdout is for."""
    click.echo(escaped(text), file=sys.stderr)


def on_terminal() -> bool:
    """Whether a person looks at the output, on something that knows colours."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def room() -> int:
    """Return how many columns a line has; as many as one could want where nobody looks."""
    return shutil.get_terminal_size().columns if on_terminal() else sys.maxsize


def print_table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]], *, folds: Sequence[str] = ()) -> None:
    """Print rows below their heads; on a terminal columns named in `folds` give way when there is little room.

    Elsewhere nothing is cut and nothing is folded: a row is a line, and columns are parted by two spaces or more.
    """
    cells = [[each if isinstance(each, Cell) else Cell(each) for each in row] for row in rows]
    if on_terminal():
        _print_rich(heads, cells, folds)
    else:
        _print_plain(heads, cells)


def print_fields(fields: Sequence[tuple[str, Cell | str]]) -> None:
    """Print names and what they are, one on each line."""
    widest = max(len(name) for name, _ in fields)
    for name, value in fields:
        cell = value if isinstance(value, Cell) else Cell(value)
        click.echo(f"{_styled(name.ljust(widest), FAINT)}{GAP}{_styled(escaped(cell.text), cell.style)}".rstrip())


def print_paragraph(heads: Sequence[Cell], widths: Sequence[int], text: str) -> None:
    """Print short words, each in its width, and a text beside them; on a terminal the text keeps to its side."""
    begin = GAP.join(
        _styled(escaped(cell.text).ljust(width), cell.style) for cell, width in zip(heads, widths, strict=True)
    )
    indent = sum(widths) + len(GAP) * len(widths)
    lines = textwrap.wrap(escaped(text), max(20, room() - indent), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        click.echo(f"{begin}{GAP}{line}".rstrip() if number == 0 else " " * indent + line)


def _styled(text: str, style: str) -> str:
    if not style or not on_terminal() or "NO_COLOR" in os.environ:
        return text
    if style in (FAINT, STRONG):
        return click.style(text, dim=style == FAINT or None, bold=style == STRONG or None)
    return click.style(text, fg=style)


def _print_plain(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    lines = [list(heads), *([escaped(cell.text) or "-" for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    for line in lines:
        click.echo(GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _print_rich(heads: Sequence[str], rows: Sequence[Sequence[Cell]], folds: Sequence[str]) -> None:
    # a tenth of a second to load: only when a table is drawn
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    def drawn(cell: Cell) -> Text:
        text = Text(escaped(cell.text) or "-", style=cell.style)
        return text if not cell.below else Text.assemble(text, "\n", (escaped(cell.below), FAINT))

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style=STRONG, show_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head not in folds)
    for row in rows:
        table.add_row(*map(drawn, row))
    Console(file=sys.stdout, highlight=False).print(table)
