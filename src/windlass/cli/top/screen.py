"""The live view: four tables, and keys to steer by."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.geometry import Size
from textual.notifications import SeverityLevel
from textual.widgets import Footer, Input, Static

from windlass.cli.top.ask import Ask, Keys
from windlass.cli.top.frame import Frame, Looker, Rate
from windlass.cli.top.job_page import JobPage
from windlass.cli.top.pane import Pane
from windlass.cli.top.rows import Table, dead_groups, dead_table, job_table, queue_table, server_table, wanted_of_dead
from windlass.cli.top.steering import Change, Steering
from windlass.cli.top.summary import summary
from windlass.cli.top.wanted import read_wanted
from windlass.client.claims import DEAD_AFTER
from windlass.client.client import Client
from windlass.client.spoken import length
from windlass.core.errors import InvalidValue, WindlassError
from windlass.core.escaped import escaped
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.stats import QueueStats

PANES: Final = ("queues", "jobs", "servers", "dead")
ROOMY: Final = (150, 32)
"""Columns and lines from which all four tables are seen at once."""
PATIENCE: Final = 3.0
"""Seconds after which a look that goes on is told of."""
ONLY_LOOKS: Final = (
    "this store belongs to one process, and others only look: change it through that process, or `windlass serve`"
)


@dataclass(frozen=True, slots=True)
class Terms:
    """How the view is run."""

    where: str
    """The store, without secrets."""
    actor: str
    interval: float = 1.0
    dead_after: timedelta = DEAD_AFTER
    changes: bool = True
    """Whether the store can be changed from here."""
    wanted: str = ""


class Top(App[None]):
    """Watches a store: one set of calls at a time, and a pause of the interval between them."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "windlass top"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "keys", "keys"),
        Binding("slash", "filter", "filter"),
        Binding("tab", "next_pane(1)", "next table", priority=True),
        Binding("shift+tab", "next_pane(-1)", show=False, priority=True),
        *(Binding(str(number), f"pane('{pane}')", show=False) for number, pane in enumerate(PANES, 1)),
        Binding("p", "pause", "pause"),
        Binding("r", "retry", "retry"),
        Binding("c", "cancel", "cancel"),
        Binding("d", "delete", "delete"),
        Binding("escape", "all_jobs", show=False),
    ]
    CSS = """
    #summary { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    #trouble { height: auto; max-height: 3; padding: 0 1; background: $error; color: $text; display: none; }
    #trouble.-shown { display: block; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    #filter.-shown { display: block; }
    #panes { layout: vertical; height: 1fr; }
    Pane { border: round $primary-darken-2; height: 1fr; display: none; }
    Pane { scrollbar-size-vertical: 1; overflow-x: hidden; }
    Pane:focus { border: round $accent; }
    Pane > .datatable--header { background: $background; }
    #queues { display: block; height: 2fr; }
    Pane.-shown { display: block; height: 3fr; }
    .-roomy #panes { layout: grid; grid-size: 2 2; grid-columns: 3fr 2fr; grid-rows: 2fr 3fr; }
    .-roomy Pane { display: block; height: 1fr; }
    .-trouble Pane { opacity: 50%; }
    """

    def __init__(self, client: Client, terms: Terms) -> None:
        """Watch the store of `client`, which is open."""
        super().__init__()
        self._client = client
        self._terms = terms
        self._looker = Looker(client)
        self._steering = Steering(client, terms.actor)
        self.wanted = terms.wanted
        """Which jobs are listed, as it was typed."""
        self.told = ""
        """What was last said to whoever looks."""
        self._chosen: JobFilter | None = read_wanted(terms.wanted)
        self._frame: Frame | None = None
        self._rates: dict[str, Rate] = {}
        self._again = asyncio.Event()
        self._failing = 0.0
        self._reason = ""
        self._asked_at: float | None = None
        self._below = "jobs"
        self.error: Exception | None = None
        """What ended the view, if something did."""
        self.looks = 0
        """How many looks have been drawn."""
        self.changes = 0
        """How many changes were tried."""

    def compose(self) -> ComposeResult:
        """Make room for all parts."""
        yield Static("looking ...", id="summary", markup=False)
        yield Static("", id="trouble", markup=False)
        with Container(id="panes"):
            yield Pane("queues")
            yield Pane("servers")
            yield Pane("jobs")
            yield Pane("dead")
        yield Input(self.wanted, id="filter", placeholder="queue:email state:dead kind:send error:timeout words")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self._pane("jobs").add_class("-shown")
        self._pane("queues").focus()
        self._arrange(self.size)
        self.run_worker(self._watch(), exclusive=True)
        self.set_interval(1.0, self._tell_of_silence)

    def on_resize(self, event: Resize) -> None:
        """Fit the new size."""
        self._arrange(event.size)

    # looking

    def look_again(self) -> None:
        """Look without waiting for the interval to end; one look at a time all the same."""
        self._again.set()

    async def _watch(self) -> None:
        try:
            await self._look_for_ever()
        except Exception as error:  # noqa: BLE001 - whoever runs this shows it; the screen would show values of jobs too
            self.error = error
            self.exit()

    async def _look_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._again.clear()
            began = self._asked_at = loop.time()
            try:
                await self._look()
            except WindlassError as error:
                self._tell_trouble(error, loop.time())
            else:
                self._failing, self._reason = 0.0, ""
                self._trouble("")
            self._asked_at = None
            self.looks += 1
            try:
                async with asyncio.timeout(max(0.0, self._terms.interval - (loop.time() - began))):
                    await self._again.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        if (page := self._page) is not None:
            page.draw(await self._client.why(page.job_id, dead_after=self._terms.dead_after))
            return
        chosen = self._chosen
        frame = await self._looker.look(chosen)
        if chosen is self._chosen:
            self._frame, self._rates = frame, self._looker.rates(frame)
            self._draw()

    def _tell_trouble(self, error: WindlassError, now: float) -> None:
        self._failing, self._reason = self._failing or now, f" ({error})"
        lasts = length(timedelta(seconds=now - self._failing))
        self._trouble(f"the store does not answer, for {lasts}: {error} - trying again")

    def _tell_of_silence(self) -> None:
        """Say so while a look goes on and on: a store may be asked again and again before it is given up."""
        now = asyncio.get_running_loop().time()
        asked_at = self._failing or self._asked_at
        if self._asked_at is not None and asked_at is not None and now - self._asked_at > PATIENCE:
            lasts = length(timedelta(seconds=now - asked_at))
            self._trouble(f"the store has not answered for {lasts}: still asking{self._reason}")

    def _trouble(self, text: str) -> None:
        shown = self.screen_stack[0].query_one("#trouble", Static)
        shown.update(escaped(text))
        shown.set_class(bool(text), "-shown")
        self.screen_stack[0].set_class(bool(text), "-trouble")
        if text and self._page is not None and text != self.told:
            self._tell(text, "error")

    # drawing

    def _arrange(self, size: Size) -> None:
        roomy = size.width >= ROOMY[0] and size.height >= ROOMY[1]
        self.screen_stack[0].set_class(roomy, "-roomy")
        # the tables know their new width when they were laid out
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        frame = self._frame
        if frame is None:
            return
        self._pane_summary(frame)
        for name in PANES:
            pane = self._pane(name)
            if pane.display and pane.room:
                pane.draw(self._table(name, frame, pane.room))

    def _pane_summary(self, frame: Frame) -> None:
        told = escaped(summary(frame, self._rates, self._terms.dead_after))
        line = Text.assemble((f"{frame.now:%H:%M:%S}  {told}  ", "bold"), (escaped(self._terms.where), "dim"))
        self.screen_stack[0].query_one("#summary", Static).update(line)

    def _table(self, name: str, frame: Frame, width: int) -> Table:
        match name:
            case "queues":
                return queue_table(frame, self._rates, width)
            case "jobs":
                return job_table(frame, width, self.wanted)
            case "servers":
                return server_table(frame, width, self._terms.dead_after)
            case _:
                return dead_table(frame, width)

    # going about

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell whether a key does anything here: those of the tables do not on a page above them."""
        del parameters
        return len(self.screen_stack) == 1 or action not in ("next_pane", "pane", "filter", "keys", "all_jobs")

    def action_next_pane(self, step: int) -> None:
        """Go to another table."""
        now = self.focused.id if isinstance(self.focused, Pane) else self._below
        self.action_pane(PANES[(PANES.index(now or "jobs") + step) % len(PANES)])

    def action_pane(self, name: str) -> None:
        """Go to a table; where there is no room for all, it takes the place below the queues."""
        if name != "queues":
            for other in PANES[1:]:
                self._pane(other).set_class(other == name, "-shown")
            self._below = name
        self._pane(name).focus()
        self.call_after_refresh(self._draw)

    def action_keys(self) -> None:
        """Show what each key does."""
        self.push_screen(Keys())

    def action_filter(self) -> None:
        """Let some jobs be chosen."""
        box = self.query_one("#filter", Input)
        box.value = self.wanted
        box.add_class("-shown")
        box.focus()

    def action_all_jobs(self) -> None:
        """List all jobs again."""
        box = self.query_one("#filter", Input)
        if box.has_class("-shown"):
            self._leave_filter()
        elif self.wanted:
            self._want("", None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """List the jobs that were typed."""
        text = " ".join(event.value.split())
        try:
            chosen = read_wanted(text)
        except InvalidValue as error:
            self._tell(str(error), "error")
            return
        self._leave_filter()
        self._want(text, chosen)

    def _leave_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("-shown")
        self.action_pane("jobs")

    def _want(self, text: str, chosen: JobFilter | None) -> None:
        self.wanted, self._chosen = text, chosen
        self.action_pane("jobs")
        self.look_again()

    def on_data_table_row_selected(self) -> None:
        """Open what the row under the cursor is about."""
        name = self._focused()
        key = self._pane(name).chosen if name else None
        if key is None:
            return
        if name == "jobs":
            self.push_screen(JobPage(JobId(key), self.look_again), self._back)
        elif name == "queues":
            self._want(f"queue:{key}", JobFilter(queue=key))
        elif name == "dead":
            wanted = wanted_of_dead(key)
            self._want(wanted, read_wanted(wanted))

    def _back(self, _: None) -> None:
        self.look_again()

    # changing

    def action_pause(self) -> None:
        """Pause the queue that is meant, or resume it."""
        queue = self._queue()
        self._ask(
            "choose a queue first: tab goes to the table of queues" if queue is None else self._steering.pause(queue)
        )

    def action_retry(self) -> None:
        """Retry the job that is meant, or all of an error."""
        self._ask(self._steering.retry(self._jobs()))

    def action_delete(self) -> None:
        """Delete the job that is meant, or all of an error."""
        self._ask(self._steering.delete(self._jobs()))

    def action_cancel(self) -> None:
        """Cancel the job that is meant."""
        jobs = self._jobs()
        self._ask(self._steering.cancel(jobs[0]) if len(jobs) == 1 else "choose one job to cancel")

    def _ask(self, change: Change | str) -> None:
        if not self._terms.changes:
            change = ONLY_LOOKS
        if isinstance(change, str):
            self._tell(change, "warning")
            return
        self.push_screen(Ask(change.question), lambda yes: self._do(change) if yes else None)

    def _do(self, change: Change) -> None:
        self.run_worker(self._change(change))

    async def _change(self, change: Change) -> None:
        try:
            said = await change.do()
        except WindlassError as error:
            self._tell(str(error), "error")
        else:
            self._tell(said)
        self.changes += 1
        self.look_again()

    def _tell(self, text: str, severity: SeverityLevel = "information") -> None:
        self.told = escaped(text)
        self.notify(self.told, severity=severity, markup=False)

    # what is meant

    @property
    def _page(self) -> JobPage | None:
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, JobPage)), None)

    def _pane(self, name: str) -> Pane:
        return self.screen_stack[0].query_one(f"#{name}", Pane)

    def _focused(self) -> str:
        return self.focused.id or "" if isinstance(self.focused, Pane) else ""

    def _jobs(self) -> Sequence[Job]:
        """Return the jobs that a key is about: that of the page, of the row, or all of an error."""
        if self._page is not None:
            return [] if self._page.job is None else [self._page.job]
        frame, name = self._frame, self._focused()
        if frame is None:
            return []
        if name == "dead":
            return dead_groups(frame.dead).get(self._pane("dead").chosen or "", [])
        chosen = self._pane("jobs").chosen if name == "jobs" else None
        return [job for job in frame.jobs if job.id == chosen]

    def _queue(self) -> QueueStats | None:
        jobs = self._jobs()
        name = jobs[0].queue if jobs else self._pane("queues").chosen
        found = [] if self._frame is None else [row for row in self._frame.queues if row.queue == name]
        return found[0] if found else None
