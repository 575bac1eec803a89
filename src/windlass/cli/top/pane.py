"""One table on the screen, drawn anew at each look without losing its place."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import BindingType
from textual.content import Content
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from windlass.cli.output import FAINT, STRONG
from windlass.cli.top.rows import Column, Row, Table
from windlass.core.escaped import escaped

_LOOKS = {FAINT: "dim", STRONG: "bold"}


class Pane(DataTable[Text]):
    """A table whose columns fit its width; the row under the cursor stays under it while rows come and go."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, name: str) -> None:
        """Be empty."""
        super().__init__(id=name, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._heads: list[tuple[str, int]] = []
        self._keys: list[str] = []
        self._drawn: list[list[tuple[str, str]]] = []

    @property
    def room(self) -> int:
        """How many columns of the terminal a line has."""
        return self.scrollable_content_region.width

    @property
    def chosen(self) -> str | None:
        """What the row under the cursor is about."""
        return self._keys[self.cursor_row] if 0 <= self.cursor_row < len(self._keys) else None

    def draw(self, table: Table) -> None:
        """Show a table."""
        # no markup: a title may hold what somebody else wrote
        self.border_title = Content(escaped(table.title) or " ")
        widths = _widths(table.columns, self.room)
        heads = [(column.head, width) for column, width in zip(table.columns, widths, strict=True)]
        cells = [_fitted(row, table.columns, widths) for row in table.rows]
        keys = [row.key for row in table.rows]
        if heads == self._heads and keys == self._keys:
            self._change(cells)
        else:
            self._rebuild(table.columns, heads, keys, cells)
        self._heads, self._keys, self._drawn = heads, keys, cells

    def _change(self, cells: list[list[tuple[str, str]]]) -> None:
        for at, (new, old) in enumerate(zip(cells, self._drawn, strict=True)):
            for column, cell in enumerate(new):
                if cell != old[column]:
                    self.update_cell_at(Coordinate(at, column), Text(*cell))

    def _rebuild(
        self,
        columns: Sequence[Column],
        heads: list[tuple[str, int]],
        keys: list[str],
        cells: list[list[tuple[str, str]]],
    ) -> None:
        chosen, at, top = self.chosen, self.cursor_row, self.scroll_y
        self.clear(columns=heads != self._heads)
        if heads != self._heads:
            for column, (head, width) in zip(columns, heads, strict=True):
                self.add_column(Text(_aligned(head, width, right=column.right), "bold dim"), width=width + 1)
        for row in cells:
            self.add_row(*(Text(*cell) for cell in row))
        if keys:
            self.move_cursor(row=keys.index(chosen) if chosen in keys else min(at, len(keys) - 1), scroll=False)
            self.scroll_to(y=top, animate=False)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Return the widths of columns: what is left goes to the one that takes it."""
    fixed = sum(column.width for column in columns) + len(columns)
    return [column.width or max(8, room - fixed) for column in columns]


def _fitted(row: Row, columns: Sequence[Column], widths: Sequence[int]) -> list[tuple[str, str]]:
    return [
        (_aligned(escaped(cell.text), width, right=column.right), look_of(cell.style))
        for cell, column, width in zip(row.cells, columns, widths, strict=True)
    ]


def look_of(style: str) -> str:
    """Return how a style of the command line is called on the screen."""
    return _LOOKS.get(style, style)


def _aligned(text: str, width: int, *, right: bool) -> str:
    """Return a text in its width, and a gap: cut where it is longer, by the columns that it takes."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    gap = " " * (width - cell_len(text))
    return f"{gap}{text} " if right else f"{text}{gap} "
