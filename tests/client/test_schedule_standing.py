from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.client.schedule_standing import next_run, runs_after, standing
from windlass.core.schedule import Schedule

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)


def a_schedule(rule: str = "30 2 * * *", timezone: str = "UTC", **fields: Any) -> Schedule:  # noqa: ANN401 - its fields
    fields = {"next_run_at": NOON, **fields}
    return Schedule(id="x", rule=rule, timezone=timezone, queue="q", codec="raw", priority=1, max_attempts=1, **fields)


@pytest.mark.parametrize(
    "fields, word",
    [
        ({}, "active"),
        ({"next_run_at": None}, "over"),
        ({"orphaned": True}, "orphaned"),
        ({"orphaned": True, "paused": True}, "paused"),
    ],
)
def test_where_a_schedule_stands_is_one_word(fields: dict[str, Any], word: str) -> None:
    assert standing(a_schedule(**fields)) == word


def test_runs_that_follow_go_by_the_clocks_of_the_zone() -> None:
    # clocks go from 2 to 3 on the 29th: what they skip is due at the end of the gap
    runs = runs_after(a_schedule(timezone="Europe/Berlin"), 2)

    assert [f"{at:%d %H:%M}" for at in runs] == ["29 01:00", "30 00:30"]


@pytest.mark.parametrize(
    "schedule",
    [
        a_schedule(paused=True),
        a_schedule(next_run_at=None),
        a_schedule("a rule of another release"),
        a_schedule(timezone="Nowhere/At_all"),
    ],
)
def test_none_follow_where_none_come_or_none_can_be_known(schedule: Schedule) -> None:
    assert runs_after(schedule, 3) == ()


def test_an_interval_that_leaves_the_calendar_ends() -> None:
    schedule = a_schedule("every 3153600000s", next_run_at=datetime(9850, 1, 1, tzinfo=UTC))

    assert len(runs_after(schedule, 3)) == 1


def test_a_paused_schedule_has_no_next_run() -> None:
    assert (next_run(a_schedule(paused=True)), next_run(a_schedule())) == (None, NOON)
