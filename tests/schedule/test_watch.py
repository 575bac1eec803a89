from datetime import UTC, datetime, timedelta

import pytest

from windlass.schedule.watch import Watch

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def watch() -> Watch:
    return Watch(60 * SECOND)


def test_the_watch_begins_with_the_first_look(watch: Watch) -> None:
    assert watch.look(NOON) == NOON
    assert watch.look(NOON + 5 * SECOND) == NOON


def test_looks_that_are_just_near_enough_keep_it_up(watch: Watch) -> None:
    for number in range(10):
        since = watch.look(NOON + number * 60 * SECOND)

        assert since == NOON


def test_a_longer_break_begins_it_anew(watch: Watch) -> None:
    watch.look(NOON)

    back = NOON + 60 * SECOND + timedelta(microseconds=1)

    assert watch.look(back) == back
    assert watch.look(back + SECOND) == back


def test_a_clock_that_is_set_back_was_watched_all_the_same(watch: Watch) -> None:
    """What comes due while it shows these times again was not missed."""
    watch.look(NOON)
    watch.look(NOON + 30 * SECOND)

    assert watch.look(NOON - 3600 * SECOND) == NOON - 3600 * SECOND
    assert watch.look(NOON - 3590 * SECOND) == NOON - 3600 * SECOND


def test_after_its_end_it_begins_anew(watch: Watch) -> None:
    watch.look(NOON)
    watch.end()

    assert watch.look(NOON + SECOND) == NOON + SECOND
