from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.http.dashboard.axis import Axis, CountAxis, TimeAxis, compact


def labels(axis: Axis) -> list[str]:
    return [tick.label for tick in axis.ticks]


@pytest.mark.parametrize(
    "most, shown",
    [
        (0, ["0", "1", "2", "3", "4"]),
        (7, ["0", "2", "4", "6", "8"]),
        (9, ["0", "5", "10"]),
        (30, ["0", "10", "20", "30"]),
        (1_100, ["0", "500", "1k", "1.5k"]),
        (3_000_001, ["0", "1M", "2M", "3M", "4M"]),
    ],
)
def test_counts_have_few_round_marks(most: int, shown: list[str]) -> None:
    assert labels(CountAxis(most)) == shown


@given(most=st.integers(0, 10**15))
def test_the_most_has_room_and_is_not_lost_in_it(most: int) -> None:
    axis = CountAxis(most)

    assert len(axis.ticks) <= 5
    assert axis.ticks[0].share == 0.0
    assert axis.ticks[-1].share == 1.0
    assert axis.share(most) >= 0.5 or most < 4


@pytest.mark.parametrize("most, top", [(0.0, "1 s"), (1.0, "1 s"), (1.1, "10 s"), (7_000.0, "10 h"), (inf, "10 h")])
def test_times_reach_to_the_next_round_one(most: float, top: str) -> None:
    axis = TimeAxis(most)

    assert (labels(axis)[0], labels(axis)[-1], axis.ticks[-1].share) == ("1 ms", top, 1.0)


@given(values=st.lists(st.floats(0, 7_200), min_size=2))
def test_what_took_longer_is_never_lower(values: list[float]) -> None:
    axis = TimeAxis(max(values))

    shares = [axis.share(value) for value in sorted(values)]
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in [*shares, axis.share(inf)])


@pytest.mark.parametrize(
    "value, said", [(0, "0"), (999, "999"), (1_000, "1k"), (25_000, "25k"), (1_500_000, "1.5M"), (10**12, "1T")]
)
def test_numbers_take_little_room(value: int, said: str) -> None:
    assert compact(value) == said
