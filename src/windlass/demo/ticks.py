"""The ticks of the schedule: which there were, by the clock and by who was alive, and which made a job."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from windlass.demo.difference import Difference, Kind
from windlass.demo.ledger import Event, What

EVERY: Final = 10
"""Seconds from tick to tick."""
MARGIN: Final = 2.5
"""Seconds that a server may need after its start to know of the schedule, and after a tick to make its job."""


class Span(NamedTuple):
    """A time in which a server was alive, and not paused."""

    begin: float
    end: float


def check_ticks(fired: Sequence[float], events: Sequence[Event]) -> Iterator[Difference]:
    """Compare the ticks that made jobs with those at which somebody was there to see them."""
    alive = list(spans(events))
    # a tick that nobody saw is caught up by the next server; one that comes with the stop may still be seen
    first, last = min((span.begin for span in alive), default=0.0), max((span.end for span in alive), default=0.0)
    for tick, jobs in sorted(Counter(fired).items()):
        if jobs > 1:
            yield Difference(Kind.TICK_TWICE, _clock(tick), f"has {jobs} jobs")
        if tick % EVERY or not first <= tick <= last + MARGIN:
            yield Difference(Kind.TICK_WRONG, _clock(tick), "is no tick of this run")
    for tick in sorted(surely_seen(alive) - set(fired)):
        yield Difference(Kind.TICK_MISSING, _clock(tick), "came while a server was alive")


def surely_seen(alive: Sequence[Span]) -> set[float]:
    """Return the ticks at which one server was alive from well before until well after."""
    return {
        float(tick)
        for span in alive
        for tick in range(EVERY * math.ceil((span.begin + MARGIN) / EVERY), math.floor(span.end - MARGIN) + 1, EVERY)
    }


def spans(events: Sequence[Event]) -> Iterator[Span]:
    """Yield when each server was alive, as the ledger has it."""
    since: dict[str, float] = {}
    for event in events:
        match event.what:
            case What.UP | What.RESUMED:
                since[event.worker] = event.at
            case What.PAUSED | What.KILLED | What.POISONED | What.STOPPED:
                if (begin := since.pop(event.worker, None)) is not None:
                    yield Span(begin, event.at)
            case _:
                pass
    last = max((event.at for event in events), default=0.0)
    for begin in since.values():
        yield Span(begin, last)


def _clock(tick: float) -> str:
    return f"{datetime.fromtimestamp(tick, UTC):%H:%M:%S}"
