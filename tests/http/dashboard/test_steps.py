from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.stats import Totals
from windlass.http.dashboard.percentiles import RANGES
from windlass.http.dashboard.steps import FARTHEST, MINUTE, SPANS, Happened, Span, depths, stepped

NOW = datetime(2026, 1, 1, 12, 7, 30, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=2)
spans = st.sampled_from(list(SPANS.values()))
small = st.integers(0, 9)
happened = st.builds(Happened, st.builds(Totals, small, small, small, small))


def some(*, enqueued: int = 0, succeeded: int = 0, dead: int = 0, cancelled: int = 0) -> Happened:
    return Happened(Totals(enqueued=enqueued, succeeded=succeeded, dead=dead, cancelled=cancelled))


def test_the_last_step_is_the_one_that_runs_now() -> None:
    steps = stepped({}, SPANS["6h"], now=NOW, known_since=LONG_AGO)

    assert steps.at(SPANS["6h"].steps - 1) == NOW.replace(minute=5, second=0)


@given(span=spans, now=st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - its bound
def test_a_span_ends_with_now_and_begins_no_earlier_than_it_says(span: Span, now: datetime) -> None:
    first = span.first(now)

    assert first <= now < first + span.step * span.steps
    assert now.replace(second=0, microsecond=0) - FARTHEST <= first


def test_minutes_add_up_to_steps() -> None:
    one, other = some(succeeded=2), some(succeeded=3)
    one.waited[4], other.ran[5] = 6, 7
    minutes = {NOW.replace(minute=1, second=0): one, NOW.replace(minute=4, second=0): other}

    steps = stepped(minutes, SPANS["6h"], now=NOW, known_since=LONG_AGO)

    added = steps.happened[-2]
    assert (added.counts.succeeded, added.waited[4], added.ran[5]) == (5, 6, 7)
    assert sum(each.counts.succeeded for each in steps.happened) == 5
    assert one.counts.succeeded == 2


def test_what_is_older_than_the_span_is_left_out() -> None:
    minutes = {NOW.replace(second=0) - 60 * MINUTE: some(succeeded=1), NOW.replace(second=0) + MINUTE: some(dead=1)}

    steps = stepped(minutes, SPANS["1h"], now=NOW, known_since=LONG_AGO)

    assert all(each == Happened() for each in steps.happened)


@pytest.mark.parametrize(
    "known_since, known",
    [
        (LONG_AGO, 72),
        (NOW.replace(minute=0, second=0), 2),
        (NOW.replace(minute=1, second=0), 1),
        (NOW.replace(minute=6, second=0), 0),
    ],
)
def test_a_step_is_known_as_a_whole_or_not(known_since: datetime, known: int) -> None:
    steps = stepped({}, SPANS["6h"], now=NOW, known_since=known_since)

    assert len(steps.known) == known


def test_depth_is_counted_back_from_now() -> None:
    known = [some(enqueued=9), some(enqueued=5, succeeded=2), some(dead=1, cancelled=1), some(succeeded=4)]

    assert depths(known, 10) == [13, 16, 14, 10]


@given(known=st.lists(happened, max_size=20), before=st.integers(0, 99))
def test_counted_back_it_is_what_it_was(known: list[Happened], before: int) -> None:
    was: list[int] = []
    depth = before + 9 * 3 * len(known)
    for each in known:
        depth += each.counts.enqueued - each.ended
        was.append(depth)

    assert depths(known, depth) == was


def test_there_is_never_less_than_nothing() -> None:
    assert depths([some(), some(enqueued=5), some()], 2) == [0, 2, 2]


def test_each_time_has_counts_of_its_own() -> None:
    first, second = Happened(), Happened()
    first.waited[0] = 1

    assert second.waited == [0] * RANGES
