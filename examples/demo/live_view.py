"""The view for a terminal: the story above, and below it the workers and a bar that move."""

import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.demo.view import Fact, Standing, Worker

WIDEST: Final = 92
NAMES: Final = r"worker-\d+"
LIFE_STYLES: Final = {"working": "green", "killed": "red", "paused": "yellow", "stopped": "dim"}


class LiveView:
    def __init__(self) -> None:
        console = Console(highlight=False)
        self._console = Console(highlight=False, width=min(console.width, WIDEST))
        self._began = time.monotonic()
        self._live = Live(console=self._console, transient=True, refresh_per_second=12)

    def title(self, text: str) -> None:
        self._console.print()
        self._console.print(Padding(Text(text, style="bold"), (0, 0, 1, 2)))
        self._live.start()

    def say(self, text: str) -> None:
        line = Table.grid(padding=(0, 2))
        line.add_column(justify="right", width=7, style="dim")
        line.add_column()
        sentence = Text(text)
        sentence.highlight_regex(NAMES, "cyan")
        line.add_row(f"{time.monotonic() - self._began:.1f} s", sentence)
        self._console.print(line)

    def show(self, standing: Standing) -> None:
        self._live.update(Padding(Group(_workers(standing.workers), "", _bar(standing)), (1, 0, 0, 2)))

    def table(self, facts: Sequence[Fact]) -> None:
        table = Table.grid(padding=(0, 3))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(style="dim")
        for fact in facts:
            table.add_row(fact.name, Text(fact.value, style=_style(fact)), fact.note)
        self._console.print(Padding(table, (1, 0, 1, 2)))

    def conclude(self, text: str, *, good: bool) -> None:
        first, *others = text.splitlines()
        self._console.print(Padding(Text(first, style="bold green" if good else "bold red"), (0, 0, 0, 2)))
        for line in others:
            self._console.print(Padding(Text(line), (0, 0, 0, 2)))
        self._console.print()

    def close(self) -> None:
        self._live.stop()


def _workers(workers: Sequence[Worker]) -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(width=8)
    table.add_column(justify="right", width=9)
    table.add_column(style="dim")
    for worker in workers:
        life = Text(worker.life, style=LIFE_STYLES[worker.life])
        table.add_row(
            Text(worker.name, style="cyan"), life, f"{worker.done} done", f"holds {worker.held}" if worker.held else ""
        )
    return table


def _bar(standing: Standing) -> Table:
    line = Table.grid(expand=True, padding=(0, 2))
    line.add_column(ratio=1)
    line.add_column(justify="right")
    bar = ProgressBar(total=standing.total, completed=standing.done, complete_style="cyan", finished_style="green")
    line.add_row(bar, f"{standing.done:,} of {standing.total:,}")
    return line


def _style(fact: Fact) -> str:
    if fact.good is None:
        return "bold"
    return "bold green" if fact.good else "bold red"
