"""The charts of the overview: what happened becomes shapes, words and numbers. Everything here is pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import inf, isinf
from typing import Final, NamedTuple

from windlass.http.dashboard.axis import Axis, CountAxis, TimeAxis
from windlass.http.dashboard.percentiles import about, percentile
from windlass.http.dashboard.steps import Happened, Steps, depths

HEIGHT: Final = 120
"""Of a chart, in pixels; how wide it is hangs on the page."""
STEP: Final = 10
"""How wide a step is, in units of its own."""
_GAP: Final = 2
_HALF: Final = 0.5
_MOST: Final = 0.95


class Mark(NamedTuple):
    """A line across a chart: how far below its top, in pixels, and what it means."""

    place: float
    label: str


class Moment(NamedTuple):
    """A time below a chart, at a place in percent."""

    place: float
    at: datetime


class Line(NamedTuple):
    """A path through a chart; `look` names its colour and whether it is a line, an area or columns."""

    look: str
    path: str


class Legend(NamedTuple):
    """What a colour means, and what there is to say about all of it."""

    look: str
    name: str
    value: str


class Chart(NamedTuple):
    """All that is needed to draw one chart."""

    name: str
    title: str
    unit: str
    width: int
    since: datetime
    step: timedelta
    unknown: int
    """How wide the part is of which nothing is known yet."""
    marks: Sequence[Mark]
    moments: Sequence[Moment]
    lines: Sequence[Line]
    legend: Sequence[Legend]
    readings: Sequence[str]
    """What each step says, the oldest first."""
    summary: str
    """The chart in words, for whoever does not see it."""
    is_empty: bool

    @property
    def height(self) -> int:
        """How high it is, in pixels."""
        return HEIGHT

    @property
    def column(self) -> int:
        """How wide a step is."""
        return STEP


def throughput(steps: Steps) -> Chart:
    """Draw how many jobs succeeded."""
    values = [each.counts.succeeded for each in steps.happened]
    known = values[steps.known_from :]
    axis = CountAxis(max(known, default=0))
    return _chart(
        steps,
        "throughput",
        "Throughput",
        f"jobs that succeeded, in each {steps.span.each}",
        axis,
        lines=_columns(steps, [values], ["good"], axis),
        legend=[Legend("good", "succeeded", f"{sum(known):,}")],
        readings=[f"{value:,} succeeded" for value in values],
        summary=_summary(steps, "Jobs that succeeded", known),
        is_empty=not any(known),
    )


def failures(steps: Steps) -> Chart:
    """Draw how many jobs died, and how many attempts failed that are made again."""
    dead = [each.counts.dead for each in steps.happened]
    retried = [each.counts.retried for each in steps.happened]
    both = [a + b for a, b in zip(dead, retried, strict=True)]
    known = slice(steps.known_from, None)
    axis = CountAxis(max(both[known], default=0))
    return _chart(
        steps,
        "failures",
        "Failures",
        f"attempts that failed, in each {steps.span.each}",
        axis,
        lines=_columns(steps, [dead, both], ["bad", "poor"], axis),
        legend=[
            Legend("bad", "dead", f"{sum(dead[known]):,}"),
            Legend("poor", "to be tried again", f"{sum(retried[known]):,}"),
        ],
        readings=[f"{a:,} dead, {b:,} to be tried again" for a, b in zip(dead, retried, strict=True)],
        summary=_summary(steps, "Jobs that died", dead[known])
        + " "
        + _summary(steps, "Attempts to be made again", retried[known]),
        is_empty=not any(both[known]),
    )


class _Lengths(NamedTuple):
    half: float | None
    most: float | None


def latency(steps: Steps) -> Chart:
    """Draw about how long jobs waited and ran: the half of them, and nearly all."""
    waited = [_lengths(each.waited) for each in steps.happened]
    ran = [_lengths(each.ran) for each in steps.happened]
    known = slice(steps.known_from, None)
    longest = [each for both in (*waited[known], *ran[known]) for each in both if each is not None]
    # what is beyond the last bound is at the top, wherever that is
    axis = TimeAxis(max((each for each in longest if not isinf(each)), default=0.0) if inf not in longest else inf)
    whole = _whole(steps.known)
    return _chart(
        steps,
        "latency",
        "Latency",
        "about how long jobs waited and ran: half of them, and 95 %",
        axis,
        lines=[
            Line("rest faded", _through(steps, [each.most for each in waited], axis)),
            Line("rest", _through(steps, [each.half for each in waited], axis)),
            Line("busy faded", _through(steps, [each.most for each in ran], axis)),
            Line("busy", _through(steps, [each.half for each in ran], axis)),
        ],
        legend=[Legend("rest", "waited", _both(whole.waited)), Legend("busy", "ran", _both(whole.ran))],
        readings=[f"waited {_both(each.waited)}, ran {_both(each.ran)}" for each in steps.happened],
        summary=f"In {steps.span.words} half of the jobs waited up to about {_said(whole.waited, _HALF)} and ran up to "
        f"about {_said(whole.ran, _HALF)}; 95 % of them waited up to about {_said(whole.waited, _MOST)} and ran up to "
        f"about {_said(whole.ran, _MOST)}.",
        is_empty=not longest,
    )


def depth(steps: Steps, unfinished: int) -> Chart:
    """Draw how many jobs were unfinished."""
    known = depths(steps.known, unfinished)
    values: list[int | None] = [*[None] * steps.known_from, *known]
    axis = CountAxis(max(known, default=0))
    return _chart(
        steps,
        "depth",
        "Depth",
        "unfinished jobs: scheduled, pending and running",
        axis,
        lines=[Line("accent area", _below(steps, values, axis)), Line("accent", _through(steps, values, axis))],
        legend=[Legend("accent", "latest", f"{unfinished:,}"), Legend("", "most", f"{max(known, default=0):,}")],
        readings=["" if value is None else f"{value:,} unfinished" for value in values],
        summary=_summary(steps, "Unfinished jobs", known),
        is_empty=not any(known),
    )


def sparkline(values: Sequence[int], *, height: int = 20) -> str:
    """Return counts as the path of a skyline, one unit wide for each; what is more than none can be seen."""
    most = max(values, default=0)
    if not most:
        return ""
    tall = [max(2, round(height * value / most)) if value else 0 for value in values]
    return f"M0 {height}" + "".join(f"V{height - each}h1" for each in tall) + f"V{height}z"


def _chart(
    steps: Steps,
    name: str,
    title: str,
    unit: str,
    axis: Axis,
    *,
    lines: Sequence[Line],
    legend: Sequence[Legend],
    readings: Sequence[str],
    summary: str,
    is_empty: bool,
) -> Chart:
    return Chart(
        name,
        title,
        unit,
        steps.span.steps * STEP,
        steps.since,
        steps.span.step,
        steps.known_from * STEP,
        [Mark(_down(tick.share), tick.label) for tick in axis.ticks],
        _moments(steps),
        lines,
        legend,
        ["not read yet" if place < steps.known_from else text for place, text in enumerate(readings)],
        summary,
        is_empty,
    )


def _moments(steps: Steps) -> list[Moment]:
    """Return round times, none of them so near an end that it would be cut."""
    span = steps.span
    all_steps = ((place, steps.at(place)) for place in range(span.steps))
    edge = span.steps // 12
    return [
        Moment(round(100 * place / span.steps, 2), at)
        for place, at in all_steps
        if (at.hour * 60 + at.minute) % (span.tick.total_seconds() // 60) == 0 and edge <= place < span.steps - edge
    ]


def _columns(steps: Steps, stacked: Sequence[Sequence[int]], looks: Sequence[str], axis: Axis) -> list[Line]:
    """Return columns that stand on each other: each row of values holds those below it as well.

    The last step is not over, so its columns are faded: the fall at the end of a chart means nothing.
    """
    lines: list[Line] = []
    below: Sequence[int] = [0] * steps.span.steps
    last = steps.span.steps - 1
    for values, look in zip(stacked, looks, strict=True):
        over = range(steps.known_from, last)
        lines.append(Line(f"{look} column", _boxes(over, below, values, axis)))
        if steps.known_from <= last:
            lines.append(Line(f"{look} column faded", _boxes([last], below, values, axis)))
        below = values
    return lines


def _boxes(places: Iterable[int], below: Sequence[int], values: Sequence[int], axis: Axis) -> str:
    path = ""
    for place in places:
        top, bottom = _down(axis.share(values[place])), _down(axis.share(below[place]))
        if values[place] > below[place]:
            # what is more than none can be seen
            top = min(top, bottom - 1)
            path += f"M{place * STEP + _GAP / 2:g} {bottom:g}V{top:g}h{STEP - _GAP}V{bottom:g}z"
    return path


def _through(steps: Steps, values: Sequence[float | None], axis: Axis) -> str:
    """Return a line from value to value; where there is none it is broken."""
    path = ""
    drawing = False
    for place in range(steps.known_from, steps.span.steps):
        value = values[place]
        if value is None:
            drawing = False
            continue
        # `h0` makes a dot of a value that has no neighbour
        path += f"{'L' if drawing else 'M'}{_middle(place):g} {_down(axis.share(value)):g}{'' if drawing else 'h0'}"
        drawing = True
    return path


def _below(steps: Steps, values: Sequence[float | None], axis: Axis) -> str:
    """Return the area below a line that is not broken."""
    line = _through(steps, values, axis)
    if not line:
        return ""
    return f"{line}V{HEIGHT}H{_middle(steps.known_from):g}z"


def _middle(place: int) -> float:
    return place * STEP + STEP / 2


def _down(share: float) -> float:
    """Return how far below the top of a chart something is."""
    return round(HEIGHT * (1 - share), 1)


def _lengths(counts: Sequence[int]) -> _Lengths:
    return _Lengths(percentile(counts, _HALF), percentile(counts, _MOST))


def _both(counts: Sequence[int]) -> str:
    half, most = _lengths(counts)
    return "-" if half is None or most is None else f"{about(half)} / {about(most)}"


def _said(counts: Sequence[int], share: float) -> str:
    value = percentile(counts, share)
    return "an unknown time" if value is None else about(value)


def _whole(all_steps: Iterable[Happened]) -> Happened:
    whole = Happened()
    for each in all_steps:
        whole.add(each)
    return whole


def _summary(steps: Steps, what: str, known: Sequence[int]) -> str:
    if not any(known):
        return f"{what}, in {steps.span.words}: none."
    return (
        f"{what}, in {steps.span.words} by {steps.span.each}: at least {min(known):,}, at most {max(known):,}, "
        f"latest {known[-1]:,}."
    )
