from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.stats import BOUNDS
from windlass.http.dashboard.percentiles import RANGES, about, percentile

counts = st.lists(st.integers(0, 1_000), min_size=RANGES, max_size=RANGES)
shares = st.floats(0.01, 1.0)


def in_range(place: int, attempts: int = 1) -> list[int]:
    return [attempts if each == place else 0 for each in range(RANGES)]


def test_nothing_took_no_time() -> None:
    assert percentile([0] * RANGES, 0.5) is None


def test_half_of_those_in_one_range_took_half_of_it() -> None:
    assert percentile(in_range(7, 100), 0.5) == pytest.approx(0.75)


def test_half_is_where_half_of_all_attempts_are() -> None:
    # 6 in up to 5 ms, 4 in the range of 1 s to 2.5 s
    found = [6, *in_range(8, 4)[1:]]

    assert percentile(found, 0.5) == pytest.approx(0.005 * 5 / 6)
    assert percentile(found, 0.95) == pytest.approx(1.0 + 1.5 * 3.5 / 4)


def test_what_is_longer_than_all_bounds_is_endless() -> None:
    assert percentile(in_range(len(BOUNDS)), 0.5) == inf


@given(counts=counts, shares=st.tuples(shares, shares))
def test_a_greater_share_never_took_less(counts: list[int], shares: tuple[float, float]) -> None:
    less, more = (percentile(counts, share) for share in sorted(shares))

    assert (less is None) == (more is None) == (sum(counts) == 0)
    assert less is None or more is None or 0 <= less <= more


@given(counts=counts.filter(any), share=shares)
def test_it_lies_in_a_range_in_which_something_was_counted(counts: list[int], share: float) -> None:
    found = percentile(counts, share)

    edges = (0.0, *BOUNDS, inf)
    assert found is not None
    assert any(count and edges[place] <= found <= edges[place + 1] for place, count in enumerate(counts))


@pytest.mark.parametrize(
    "seconds, said",
    [
        (0.0, "1 ms"), (0.0123, "12 ms"), (0.256, "260 ms"), (1.44, "1.4 s"), (12.3, "12 s"),
        (200.0, "3 min"), (inf, "over 2 h"),
    ],
)  # fmt: skip
def test_it_is_said_no_more_exactly_than_it_is_known(seconds: float, said: str) -> None:
    assert about(seconds) == said
