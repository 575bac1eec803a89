"""A report as Markdown."""

from collections.abc import Sequence

from benchmarks.reporting import table
from benchmarks.reporting.report import Report


def render(report: Report) -> str:
    """Return the whole report; its tables also read well unrendered."""
    blocks = ["# Benchmark report", report.preamble() + "."]
    blocks.append(_table(table.WHO, table.who(report.contestants, report.missing)))
    for part, lines in table.parts(report.rows).items():
        blocks += [f"## {part}", _table(table.HEADINGS, lines)]
    return "\n\n".join(blocks) + "\n"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in line] for line in [headings, *lines]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headings))]
    rule = [
        ("-" * (width - 1) + ":") if name in table.NUMBERS else "-" * width
        for name, width in zip(headings, widths, strict=True)
    ]
    padded = [
        [
            cell.rjust(width) if name in table.NUMBERS else cell.ljust(width)
            for cell, name, width in zip(line, headings, widths, strict=True)
        ]
        for line in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])
