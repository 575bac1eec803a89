"""What a command prints: text for people, or one JSON document for programs."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple
from unicodedata import east_asian_width

import click
import msgspec

from windlass.core.escaped import escaped

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
    _echo(_styled(escaped(text), style))


def note(text: str) -> None:
    """Tell something beside the result, which is all that stdout is for."""
    click.echo(escaped(text), file=sys.stderr)


def on_terminal() -> bool:
    """Whether a person looks at the output, on something that knows colours; FORCE_COLOR says so of anything."""
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def room() -> int:
    """Return how many columns a line has; as many as one could want where nobody looks."""
    return shutil.get_terminal_size().columns if on_terminal() else sys.maxsize


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell | str]],
    *,
    folds: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> None:
    """Print rows below their heads; on a terminal columns named in `folds` give way when there is little room.

    Those named in `numbers` stand to the right there.
    Elsewhere nothing is cut and nothing is folded: a row is a line, and columns are parted by two spaces or more.
    """
    cells = [[each if isinstance(each, Cell) else Cell(each) for each in row] for row in rows]
    if on_terminal():
        _print_rich(heads, cells, folds, numbers)
    else:
        _print_plain(heads, cells)


def print_fields(fields: Sequence[tuple[str, Cell | str]]) -> None:
    """Print names and what they are, one on each line; on a terminal a long value keeps to its side."""
    widest = max(len(name) for name, _ in fields)
    for name, value in fields:
        cell = value if isinstance(value, Cell) else Cell(value)
        first, *more = _folded(escaped(cell.text), max(20, room() - widest - len(GAP)))
        _echo(f"{_styled(name.ljust(widest), FAINT)}{GAP}{_styled(first, cell.style)}".rstrip())
        for line in more:
            _echo(f"{' ' * widest}{GAP}{_styled(line, cell.style)}")


def print_text(text: str, *, indent: str = "", style: str = "") -> None:
    """Print lines of somebody else's, each on a line of its own."""
    for line in text.splitlines() or [""]:
        _echo(f"{indent}{_styled(escaped(line, keep=chr(9)), style)}".rstrip())


def print_paragraph(heads: Sequence[Cell], widths: Sequence[int], text: str) -> None:
    """Print short words, each in its width, and a text beside them; on a terminal the text keeps to its side."""
    begin = GAP.join(
        _styled(escaped(cell.text).ljust(width), cell.style) for cell, width in zip(heads, widths, strict=True)
    )
    indent = sum(widths) + len(GAP) * len(widths)
    lines = textwrap.wrap(escaped(text), max(20, room() - indent), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        _echo(f"{begin}{GAP}{line}".rstrip() if number == 0 else " " * indent + line)


def _echo(line: str) -> None:
    # else click takes the colours out that were asked for
    click.echo(line, color=True if on_terminal() else None)


def _folded(text: str, width: int) -> Sequence[str]:
    """Return a text in lines of `width` columns, where some letters take two."""
    if len(text) * 2 <= width or (text.isascii() and len(text) <= width):
        return [text]
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second to load
    from rich.text import Text  # noqa: PLC0415

    return [line.plain.rstrip() for line in Text(text).wrap(Console(), width, overflow="fold")] or [""]


def _styled(text: str, style: str) -> str:
    if not style or not on_terminal() or os.environ.get("NO_COLOR"):
        return text
    if style in (FAINT, STRONG):
        return click.style(text, dim=style == FAINT or None, bold=style == STRONG or None)
    return click.style(text, fg=style)


def _print_plain(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    lines = [list(heads), *([escaped(cell.text) or "-" for cell in row] for row in rows)]
    widths = [max(map(_columns, column)) for column in zip_longest(*lines, fillvalue="")]
    for line in lines:
        padded = [text + " " * (width - _columns(text)) for text, width in zip(line, widths, strict=True)]
        click.echo(GAP.join(padded).rstrip())


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _print_rich(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], folds: Sequence[str], numbers: Sequence[str]
) -> None:
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
        table.add_column(
            head, overflow="fold", no_wrap=head not in folds, justify="right" if head in numbers else "left"
        )
    for row in rows:
        table.add_row(*map(drawn, row))
    Console(file=sys.stdout, highlight=False, width=room()).print(table)
