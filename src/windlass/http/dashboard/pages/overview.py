"""What there is, what happens, and how it went lately."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from windlass.api.operations import MINUTES
from windlass.api.shape import Asked
from windlass.core.looks import ServerRecord
from windlass.core.stats import QueueStats, total
from windlass.http.dashboard import charts
from windlass.http.dashboard.concerns import Servers, concerns
from windlass.http.dashboard.history import FRESH, LATELY, Histories, History
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.steps import MINUTE, SPANS, Happened, Span, SpanName, stepped
from windlass.http.dashboard.view import Facts, View

MOST_QUEUES: Final = 100
_PAIR: Final = 2
"""Minutes that a column of a sparkline stands for."""

_Name = Annotated[str, Meta(max_length=200)]


class OverviewAsked(Asked, kw_only=True):
    """How far back, of which queue alone, and which queues to list: those whose names begin with `prefix`."""

    range: SpanName = "1h"
    queue: _Name | None = None
    prefix: _Name | None = None


class Pace(NamedTuple):
    """How many jobs succeeded in the last minute that is over, and in the one that runs."""

    last: int
    running: int


class QueueRow(NamedTuple):
    """A queue in the list, with how many of its jobs succeeded in the last hour."""

    stats: QueueStats
    lately: int
    path: str


class Overview(View[OverviewAsked]):
    """Figures, charts, and the queues."""

    name: ClassVar = "overview"
    title: ClassVar = "Overview"
    path: ClassVar = "/"
    roles: ClassVar = MINUTES.roles
    asks = OverviewAsked
    regions: ClassVar = ("first", "figures", "concerns", "throughput", "failures", "latency", "depth", "queues")

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._histories = Histories()

    async def look(self, seen: Seen, asked: OverviewAsked) -> Facts:
        """Return the counts of now, the charts of a span, and the first queues by name."""
        queues = await seen.queues()
        span = SPANS[asked.range]
        history = self._histories.of(seen.client.clock, seen.looker.queues, asked.queue)
        await history.look(seen.store, queues, span.step * span.steps)
        records = await seen.kept.within(FRESH, ("overview servers", seen.looker.queues), seen.store.servers)
        servers = Servers(
            history.now or seen.client.clock.now(), [each for each in records if _works(each, asked.queue)]
        )
        chosen = [row for row in queues if asked.queue in (None, row.queue)]
        return {
            "span": span,
            "spans": list(SPANS.values()),
            "is_known": bool(chosen),
            "figures": total(chosen),
            "pace": _pace(history, chosen, asked.queue),
            "live": len(servers.live),
            "charts": history.once(span.name, lambda: _charts(history, span, asked.queue)),
            "concerns": concerns(chosen, servers, sees_all=seen.looker.queues is None),
            **_listed(queues, history, asked.prefix or ""),
        }


def _works(record: ServerRecord, queue: str | None) -> bool:
    return queue is None or queue in record.queues


def _pace(history: History, chosen: Sequence[QueueStats], queue: str | None) -> Pace:
    """Return how quick it goes; what succeeded since the minutes were read is known by the totals."""
    if history.now is None:
        return Pace(0, 0)
    this = history.now.replace(second=0, microsecond=0)
    nothing = Happened()
    read = _of(history.stats, queue).totals.succeeded
    since = max(0, total(chosen).totals.succeeded - read)
    running = history.minutes.get(this, nothing).counts.succeeded + since
    return Pace(history.minutes.get(this - MINUTE, nothing).counts.succeeded, running)


def _charts(history: History, span: Span, queue: str | None) -> Mapping[str, charts.Chart]:
    if history.now is None or history.since is None:
        return {}
    steps = stepped(history.minutes, span, now=history.now, known_since=history.since)
    counts = _of(history.stats, queue)
    drawn = (
        charts.throughput(steps),
        charts.failures(steps),
        charts.latency(steps),
        charts.depth(steps, counts.scheduled + counts.pending + counts.running),
    )
    return {chart.name: chart for chart in drawn}


def _of(stats: Sequence[QueueStats], queue: str | None) -> QueueStats:
    return total(row for row in stats if queue in (None, row.queue))


def _listed(queues: Sequence[QueueStats], history: History, prefix: str) -> Facts:
    found = [row for row in queues if (row.queue or "").startswith(prefix)]
    shown = found[:MOST_QUEUES]
    lately = history.once("lately", lambda: _lately(history))
    rows = [QueueRow(row, *lately.get(row.queue or "", (0, ""))) for row in shown]
    return {"rows": rows, "found": len(found), "all_queues": len(queues)}


def _lately(history: History) -> Mapping[str, tuple[int, str]]:
    """Return how many jobs of each queue succeeded in the last hour, and that as a sparkline."""
    if history.now is None:
        return {}
    first = history.now.replace(second=0, microsecond=0) - MINUTE * (LATELY - 1)
    values: dict[str, list[int]] = {}
    for minute, counts in history.lately.items():
        place = (minute - first) // (MINUTE * _PAIR)
        if 0 <= place < LATELY // _PAIR:
            for queue, count in counts.items():
                values.setdefault(queue, [0] * (LATELY // _PAIR))[place] += count
    return {queue: (sum(each), charts.sparkline(each)) for queue, each in values.items()}
