"""Time in equal steps: what happened in each of them, and how much was unfinished at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias

from windlass.core.stats import Totals
from windlass.http.dashboard.percentiles import RANGES

MINUTE: Final = timedelta(minutes=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

SpanName: TypeAlias = Literal["1h", "6h", "24h"]


def _no_ranges() -> list[int]:
    return [0] * RANGES


@dataclass(slots=True)
class Happened:
    """What happened in some time, and how long it took, counted by range of `BOUNDS`."""

    counts: Totals = field(default_factory=Totals)
    waited: list[int] = field(default_factory=_no_ranges)
    ran: list[int] = field(default_factory=_no_ranges)

    def add(self, other: "Happened") -> None:
        """Count what happened in another time as well."""
        self.counts = self.counts.plus(other.counts)
        for place in range(RANGES):
            self.waited[place] += other.waited[place]
            self.ran[place] += other.ran[place]

    @property
    def ended(self) -> int:
        """How many jobs ended, in whatever way."""
        return self.counts.succeeded + self.counts.dead + self.counts.cancelled


class Span(NamedTuple):
    """How far back one looks, in how many steps of which length; the last step is not over yet."""

    name: SpanName
    words: str
    step: timedelta
    each: str
    steps: int
    tick: timedelta
    """How far apart times are written below a chart."""

    def first(self, now: datetime) -> datetime:
        """Return when the first of its steps began; steps begin at round times."""
        return now - (now - _EPOCH) % self.step - self.step * (self.steps - 1)


_HOUR: Final = 60 * MINUTE
SPANS: Final[Mapping[SpanName, Span]] = {
    span.name: span
    for span in (
        Span("1h", "the last hour", MINUTE, "minute", 60, 15 * MINUTE),
        Span("6h", "the last 6 hours", 5 * MINUTE, "5 minutes", 72, 2 * _HOUR),
        Span("24h", "the last 24 hours", 15 * MINUTE, "15 minutes", 96, 6 * _HOUR),
    )
}
FARTHEST: Final = max(span.step * span.steps for span in SPANS.values())


class Steps(NamedTuple):
    """The steps of a span, the oldest first. Of those before `known_from` nothing is known yet."""

    span: Span
    since: datetime
    known_from: int
    happened: Sequence[Happened]

    @property
    def known(self) -> Sequence[Happened]:
        """What is known."""
        return self.happened[self.known_from :]

    def at(self, place: int) -> datetime:
        """Return when a step began."""
        return self.since + self.span.step * place


def stepped(minutes: Mapping[datetime, Happened], span: Span, *, now: datetime, known_since: datetime) -> Steps:
    """Return what happened in the minutes, in the steps of a span that ends now; a step is known as a whole or not."""
    first = span.first(now)
    happened = [Happened() for _ in range(span.steps)]
    for minute, counted in minutes.items():
        place = (minute - first) // span.step
        if 0 <= place < span.steps:
            happened[place].add(counted)
    # a step that is known in part counts as one that is not
    unknown = -((first - known_since) // span.step)
    return Steps(span, first, min(max(unknown, 0), span.steps), happened)


def depths(known: Sequence[Happened], unfinished: int) -> list[int]:
    """Return how many jobs were unfinished at the end of each step; at the end of the last it is `unfinished`.

    No store keeps how deep its queues were: it is counted back from what there is now, by what came and what ended
    since. What is in neither, as dead jobs that somebody gave a new budget or a move to another store, shifts what was
    before it; there is never less than none.
    """
    changes = (happened.ended - happened.counts.enqueued for happened in reversed(known[1:]))
    back = list(accumulate(changes, initial=unfinished))
    return [max(0, depth) for depth in reversed(back)] if known else []
