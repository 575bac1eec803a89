"""Looks at random times, by watchers that come and go: what each due time of a schedule comes to."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.core.rule import Rule, read_rule
from windlass.core.schedule import CatchUp
from windlass.core.ticks import MOST_CAUGHT_UP, ticks

START = datetime(2026, 10, 24, 22, 0, 0, tzinfo=UTC)
RULES = ("* * * * * *", "*/7 * * * * *", "* * * * *", "30 */2 * * * *", "every 1s", "every 1.5s", "every 90s")
LONGEST = timedelta(seconds=60)


class Look(NamedTuple):
    """A watcher looks, so many milliseconds after whoever looked before; `anew` when it has just come."""

    after: int
    watcher: int
    anew: bool


looks = st.lists(
    st.builds(Look, st.integers(0, 40_000), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=25,
)


def due_times(rule: Rule, first: datetime, until: datetime) -> list[datetime]:
    """Return every due time up to `until`, one by one."""
    found: list[datetime] = []
    due: datetime | None = first
    while due is not None and due <= until:
        found.append(due)
        due = rule.following(due)
    return found


def lives(given_looks: Sequence[Look]) -> list[tuple[datetime, datetime]]:
    """Return the time of each look, and since when its watcher has watched without a break."""
    now = START
    since: dict[int, datetime] = {}
    last: dict[int, datetime] = {}
    found: list[tuple[datetime, datetime]] = []
    for look in given_looks:
        now += timedelta(milliseconds=look.after)
        before = last.get(look.watcher)
        if look.anew or before is None or now - before > LONGEST:
            since[look.watcher] = now
        last[look.watcher] = now
        found.append((now, since[look.watcher]))
    return found


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(RULES), looks, st.sampled_from(["none", "one", "all"]))
def test_each_due_time_makes_one_job_at_most_and_exactly_one_under_watch(
    text: str, given_looks: list[Look], catch_up: CatchUp
) -> None:
    rule = read_rule(text, UTC)
    first = rule.following(START)
    assert first is not None
    seen = lives(given_looks)
    made: list[datetime] = []
    due: datetime | None = first
    watched: set[datetime] = set()
    for now, since in seen:
        while due is not None and due <= now:
            expected = due_times(rule, due, now)
            found = ticks(rule, due, now=now, watched_since=since, catch_up=catch_up, overlap="allow")
            watched |= {each for each in expected if each >= since and each <= found.last}
            missed = [each for each in expected if each < since]
            caught = {"none": [], "one": missed[-1:], "all": missed[-MOST_CAUGHT_UP:]}[catch_up]
            assert [each for each in found.made if each < since] == caught
            assert found.missed == (missed[-1] if missed else None)
            assert found.dropped == (len(missed) > len(caught))
            assert found.next_run_at is None or found.next_run_at > found.last
            made += found.made
            due = found.next_run_at

    assert made == sorted(set(made))
    assert watched <= set(made)
    assert set(made) <= set(due_times(rule, first, seen[-1][0]))
