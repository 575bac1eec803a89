import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.duration import LONGEST, Duration, duration, from_micros, later, moment, to_micros
from windlass.core.errors import InvalidValue

moments = st.datetimes(timezones=st.just(UTC))
durations = st.timedeltas(timedelta(0), LONGEST)


@pytest.mark.parametrize(
    "given, expected",
    [
        (0, timedelta(0)),
        (1.5, timedelta(seconds=1.5)),
        (30, timedelta(seconds=30)),
        (timedelta(days=1), timedelta(days=1)),
        (LONGEST, LONGEST),
        (-0.0, timedelta(0)),
    ],
)
def test_a_duration_is_a_timedelta_or_a_number_of_seconds(given: Duration, expected: timedelta) -> None:
    assert duration(given, "lease") == expected


@pytest.mark.parametrize("given", [-1, -0.001, timedelta(microseconds=-1), -1e9])
def test_a_negative_duration_is_refused(given: Duration) -> None:
    with pytest.raises(InvalidValue, match="lease must"):
        duration(given, "lease")


@pytest.mark.parametrize(
    "given",
    [math.nan, math.inf, -math.inf, 1e300, 10**400, -(10**5000), LONGEST + timedelta(1), timedelta.max],
    ids=["nan", "inf", "-inf", "1e300", "10**400", "-10**5000", "a day more", "max"],
)
def test_a_duration_that_is_no_number_or_longer_than_a_century_is_refused(given: Duration) -> None:
    with pytest.raises(InvalidValue, match="36,500 days"):
        duration(given, "lease")


@pytest.mark.parametrize("given", [True, False, "30", None, b"1", [1]])
def test_a_duration_of_another_type_is_refused(given: object) -> None:
    with pytest.raises(InvalidValue, match="number of seconds"):
        duration(given, "lease")  # type: ignore[arg-type]


def test_a_moment_is_brought_to_utc() -> None:
    in_stockholm = datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))

    found = moment(in_stockholm, "run_at")

    assert found == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_a_naive_datetime_is_refused_with_advice() -> None:
    with pytest.raises(InvalidValue, match=r"run_at has no time zone: use datetime.now\(UTC\)"):
        moment(datetime(2026, 1, 1), "run_at")  # noqa: DTZ001 - the naive one is the case


@pytest.mark.parametrize("given", ["2026-01-01", 0, None, datetime(2026, 1, 1, tzinfo=UTC).date()])
def test_a_moment_of_another_type_is_refused(given: object) -> None:
    with pytest.raises(InvalidValue, match="must be a datetime"):
        moment(given, "run_at")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "edge",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_a_moment_that_utc_cannot_express_is_refused(edge: datetime) -> None:
    with pytest.raises(InvalidValue, match="outside of what UTC can express"):
        moment(edge, "run_at")


@pytest.mark.parametrize("edge", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_first_and_the_last_moment_are_kept(edge: datetime) -> None:
    assert moment(edge, "run_at") == edge
    assert from_micros(to_micros(edge)) == edge


@given(at=moments)
def test_a_moment_survives_its_microseconds(at: datetime) -> None:
    assert from_micros(to_micros(at)) == at


@given(first=moments, second=moments)
def test_microseconds_are_in_the_order_of_their_moments(first: datetime, second: datetime) -> None:
    assert (to_micros(first) < to_micros(second)) == (first < second)


@given(at=moments, by=durations)
def test_later_is_never_earlier_and_never_fails(at: datetime, by: timedelta) -> None:
    assert at <= later(at, by) <= datetime.max.replace(tzinfo=UTC)


def test_later_stops_at_the_last_moment() -> None:
    assert later(datetime(9999, 12, 31, tzinfo=UTC), LONGEST) == datetime.max.replace(tzinfo=UTC)
