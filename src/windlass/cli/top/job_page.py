"""The page of one job: what it is, why it stands where it stands, its history and its log, live."""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from windlass.cli.job_shown import STYLES, fields, log_text, outcome_of
from windlass.cli.output import FAINT, STRONG, Cell
from windlass.cli.top.pane import look_of
from windlass.client.spoken import took
from windlass.client.why import Why
from windlass.core.escaped import escaped
from windlass.core.ids import JobId
from windlass.core.job import Job

LINES: Final = 200
"""How many of the newest lines of its log are shown."""


class JobPage(Screen[None]):
    """One job, which may end, or go, while somebody looks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("r", "app.retry", "retry"),
        Binding("c", "app.cancel", "cancel"),
        Binding("d", "app.delete", "delete"),
        Binding("p", "app.pause", "pause queue"),
    ]
    DEFAULT_CSS = """
    JobPage VerticalScroll { border: round $primary; padding: 0 1; }
    JobPage VerticalScroll:focus { border: round $accent; }
    """

    def __init__(self, job_id: JobId, opened: Callable[[], None]) -> None:
        """Show a job, once it was looked at; `opened` is called when there is room to show it."""
        super().__init__()
        self.job_id = job_id
        self._opened = opened
        self.job: Job | None = None

    def compose(self) -> ComposeResult:
        """Make room."""
        with VerticalScroll():
            yield Static("looking ...", id="job", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Ask for a first look."""
        self._opened()

    def draw(self, why: Why) -> None:
        """Show what was seen; who reads the end of the log goes on reading the end."""
        if not self.is_mounted:
            return
        self.job = why.job
        scroll = self.query_one(VerticalScroll)
        at_end = scroll.max_scroll_y > 0 and scroll.scroll_y >= scroll.max_scroll_y
        self.query_one("#job", Static).update(Text("\n").join(_lines(why)))
        if at_end:
            self.call_after_refresh(scroll.scroll_end, animate=False)

    def action_leave(self) -> None:
        """Go back to the tables."""
        self.dismiss(None)


def _lines(why: Why) -> Iterator[Text]:
    job = why.job
    if job is not None:
        yield from _fields(why, job)
        yield Text()
    yield Text("Why" if job is None or not job.state.finished else "How it ended", style="bold")
    for reason in why.reasons:
        yield Text(f"- {escaped(reason.message)}", style="" if job is None else STYLES[job.state])
        if reason.advice is not None:
            yield Text(f"  -> {escaped(reason.advice)}", style="dim")
    if job is not None:
        yield from _history(why, job)
        yield from _log(job)


def _fields(why: Why, job: Job) -> Iterator[Text]:
    told = fields(job, why.now)
    widest = max(len(name) for name, _ in told)
    for name, value in told:
        cell = value if isinstance(value, Cell) else Cell(value)
        yield Text.assemble(
            (name.ljust(widest + 2), look_of(FAINT)),
            (escaped(" ".join(cell.text.split())), look_of(cell.style)),
        )


def _history(why: Why, job: Job) -> Iterator[Text]:
    if not job.history:
        return
    yield Text()
    yield Text("History", style="bold")
    for each in reversed(job.history):
        failure = "" if each.failure is None else f": {' '.join(each.failure.full_summary.split())}"
        lasted = took(each.started_at, each.ended_at or why.now)
        yield Text(
            escaped(
                f"{each.delivery:>3}. attempt {each.attempt}, {each.started_at:%Y-%m-%d %H:%M:%S}, {lasted}, "
                f"{outcome_of(each)}, {each.worker or '-'}{failure}"
            )
        )


def _log(job: Job) -> Iterator[Text]:
    yield Text()
    many = len(job.log)
    shown = f"Log, the last {LINES:,} of {many:,} lines" if many > LINES else f"Log, {many:,} lines"
    yield Text(shown if many else "Log: nothing was written", style=look_of(STRONG if many else FAINT))
    for line in job.log[-LINES:]:
        yield Text(escaped(log_text(line)))
