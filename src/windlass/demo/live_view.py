"""The view for a terminal: the story above, and below it queues, servers and the schedule, which move."""

import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from windlass.core.stats import QueueStats
from windlass.demo.view import Fact, Server, Standing, Timetable, View

WIDEST: Final = 100
FIRST_COLUMN: Final = 10
AROUND_THE_CHART: Final = 54
"""Columns that stand around the chart of the throughput."""
NAMES: Final = r"server \d+"
LIFE_STYLES: Final = {"working": "green", "killed": "red", "poisoned": "red", "paused": "yellow", "stopped": "dim"}
HEIGHTS: Final = "▁▂▃▄▅▆▇█"
SERVERS_SHOWN: Final = 3


class LiveView(View):
    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(highlight=False)
        console.width = min(console.width, WIDEST)
        self._console = console
        self._began = time.monotonic()
        self._live = Live(console=console, transient=True, refresh_per_second=8)

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
        self._live.update(panel(standing, self._console.width))

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


def panel(standing: Standing, width: int) -> RenderableType:
    """Return all that moves."""
    parts: list[RenderableType] = [
        _queues(standing.queues),
        "",
        _servers(standing.servers),
        "",
        _numbers(standing, width - AROUND_THE_CHART),
        "",
        _bar(standing),
    ]
    return Padding(Group(*parts), (1, 2, 0, 2))


def _queues(queues: Sequence[QueueStats]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("queue", width=FIRST_COLUMN)
    for title in ("waiting", "running", "retrying", "succeeded", "dead"):
        table.add_column(title, justify="right", width=max(6, len(title)))
    for queue in queues:
        numbers = [queue.pending, queue.running, queue.scheduled, queue.succeeded, queue.dead]
        styles = ["", "cyan", "yellow", "green", "red"]
        cells = [Text(f"{n:,}", style=style if n else "dim") for n, style in zip(numbers, styles, strict=True)]
        table.add_row(str(queue.queue), *cells)
    return table


def _servers(servers: Sequence[Server]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("server", width=FIRST_COLUMN)
    table.add_column("", width=8)
    table.add_column("done", justify="right", width=6)
    table.add_column("runs", no_wrap=True)
    shown = servers[-SERVERS_SHOWN:]
    for server in shown:
        life = Text(server.life, style=LIFE_STYLES[server.life])
        table.add_row(Text(server.name, style="cyan"), life, f"{server.done:,}", Text(server.runs, style="dim"))
    # always as many lines, so that nothing below jumps
    for _ in range(SERVERS_SHOWN - len(shown)):
        table.add_row("", "", "", "")
    return table


def _numbers(standing: Standing, chart: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=FIRST_COLUMN, style="dim")
    table.add_column(no_wrap=True)
    table.add_row("schedule", _timetable(standing.timetable))
    table.add_row("throughput", _throughput(standing, chart))
    if standing.address is not None:
        table.add_row("browser", Text(standing.address, style="cyan"))
    return table


def _timetable(timetable: Timetable | None) -> Text:
    if timetable is None:
        return Text("none yet", style="dim")
    text = Text(f"{timetable.name}  ")
    text.append(timetable.rule, style="magenta")
    if timetable.next_in is not None:
        text.append(f"   next in {max(0, round(timetable.next_in)):>2} s")
    times = "once" if timetable.fired == 1 else f"{timetable.fired:,} times"
    return text.append(f"   fired {times}", style="dim")


def _throughput(standing: Standing, chart: int) -> Text:
    rates = list(standing.rates)[-chart:]
    most = max([*rates, 1])
    mean = sum(rates[-5:]) / len(rates[-5:]) if rates else 0.0
    heights = "".join(HEIGHTS[rate * (len(HEIGHTS) - 1) // most] for rate in rates)
    text = Text(f"{heights:<{chart}}", style="green")
    text.append(f"{mean:5.0f}/s", style="default")
    return text.append(f"   {standing.retried:,} retried, {standing.rescued:,} rescued", style="dim")


def _bar(standing: Standing) -> Table:
    line = Table.grid(expand=True, padding=(0, 2))
    line.add_column(ratio=1)
    line.add_column(justify="right", style="dim")
    done = min(standing.elapsed, standing.total)
    bar = ProgressBar(total=standing.total, completed=done, complete_style="cyan", finished_style="green")
    line.add_row(bar, f"{standing.elapsed:.0f} s of about {standing.total:.0f}")
    return line


def _style(fact: Fact) -> str:
    if fact.good is None:
        return "bold"
    return "bold green" if fact.good else "bold red"
