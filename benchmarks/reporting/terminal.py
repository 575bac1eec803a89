"""A report on a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.reporting import table
from benchmarks.reporting.report import Report


def show(report: Report) -> None:
    """Write the report to the standard output in colour."""
    console = Console()
    console.print(report.preamble(), style="dim")
    console.print(_table("contestants", table.WHO, table.who(report.contestants, report.missing)))
    for part, lines in table.parts(report.rows).items():
        console.print(_table(part, table.HEADINGS, lines))


def _table(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    drawn = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for heading in headings:
        drawn.add_column(heading, justify="right" if heading in table.NUMBERS else "left")
    for line in lines:
        # a title begins a group
        if line[0] and headings is table.HEADINGS:
            drawn.add_section()
        ours = any(cell.startswith("windlass") for cell in line[:2])
        drawn.add_row(*line, style="bold" if ours else None)
    return drawn
