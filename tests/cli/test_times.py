from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from windlass.cli.times import distance, length, shown_at

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "seconds,said",
    [
        (0, "now"),
        (0.4, "now"),
        (5, "in 5 s"),
        (-5, "5 s ago"),
        (59, "in 59 s"),
        (60, "in 1 min"),
        (90, "in 1 min 30 s"),
        (240, "in 4 min"),
        (3 * 3600 + 1800, "in 3 h"),
        (3600 + 1200, "in 1 h 20 min"),
        (86_400, "in 1 d"),
        (-400 * 86_400, "400 d ago"),
    ],
)
def test_a_distance_is_told_in_few_words(seconds: float, said: str) -> None:
    assert distance(NOW + timedelta(seconds=seconds), NOW) == said


def test_no_time_at_all_has_a_length() -> None:
    assert length(timedelta(0)) == "0 s"


def test_a_time_is_shown_with_the_offset_of_its_zone() -> None:
    assert shown_at(NOW, UTC) == "2026-01-01 12:00:00 +00:00"
    assert shown_at(NOW, ZoneInfo("Europe/Berlin")) == "2026-01-01 13:00:00 +01:00"
    assert shown_at(NOW, ZoneInfo("America/St_Johns")) == "2026-01-01 08:30:00 -03:30"
