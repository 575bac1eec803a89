from dataclasses import replace
from datetime import timedelta

import pytest

from windlass.client.server_details import STOPPING, presence
from windlass.engine.heart import new_record
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    "silence, word",
    [
        (timedelta(), "live"),
        (timedelta(seconds=59.9), "live"),
        (MINUTE, "silent"),
        (timedelta(minutes=9.9), "silent"),
        (10 * MINUTE, "gone"),
        (timedelta(hours=20), "gone"),
    ],
)
def test_a_server_is_live_then_silent_then_gone(silence: timedelta, word: str) -> None:
    clock = FakeClock()
    record = new_record("box#1", clock=clock)

    assert presence(record, clock.now() + silence, MINUTE) == word


@pytest.mark.parametrize("silence, word", [(timedelta(), "stopping"), (MINUTE, "silent"), (10 * MINUTE, "gone")])
def test_a_server_that_stops_says_so_until_it_is_silent(silence: timedelta, word: str) -> None:
    clock = FakeClock()
    record = replace(new_record("box#1", clock=clock), details={STOPPING: "yes"})

    assert presence(record, clock.now() + silence, MINUTE) == word


def test_a_clock_that_was_ahead_makes_nobody_silent() -> None:
    clock = FakeClock()
    record = new_record("box#1", clock=clock)

    assert presence(replace(record, seen_at=clock.now() + 9 * MINUTE), clock.now(), MINUTE) == "live"
