from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.stats import QueueStats, Totals, total

counts = st.integers(0, 10**12)
totals = st.builds(Totals, counts, counts, counts, counts, counts, counts)
moments = st.datetimes(timezones=st.just(UTC))
rows = st.builds(
    QueueStats,
    queue=st.sampled_from(["a", "b"]),
    paused=st.booleans(),
    scheduled=counts,
    pending=counts,
    running=counts,
    succeeded=counts,
    dead=counts,
    cancelled=counts,
    oldest_waiting=st.none() | moments,
    totals=totals,
)


def test_the_total_of_nothing_is_nothing() -> None:
    assert total([]) == QueueStats(None)


@given(row=rows)
def test_the_total_of_one_queue_has_its_numbers(row: QueueStats) -> None:
    found = total([row])

    assert found.queue is None
    assert (found.pending, found.paused, found.totals) == (row.pending, row.paused, row.totals)


@given(some=st.lists(rows, max_size=4))
def test_the_total_is_the_sum_of_every_number(some: list[QueueStats]) -> None:
    found = total(iter(some))

    for name in ("scheduled", "pending", "running", "succeeded", "dead", "cancelled"):
        assert getattr(found, name) == sum(getattr(row, name) for row in some)
    for name in Totals._fields:
        assert getattr(found.totals, name) == sum(getattr(row.totals, name) for row in some)


@given(some=st.lists(rows, max_size=4))
def test_the_oldest_of_all_is_the_oldest_of_one(some: list[QueueStats]) -> None:
    oldest = [row.oldest_waiting for row in some if row.oldest_waiting]

    assert total(some).oldest_waiting == (min(oldest) if oldest else None)


def test_the_total_is_paused_when_every_queue_is() -> None:
    paused, open_ = QueueStats("a", paused=True), QueueStats("b")

    assert total([paused]).paused
    assert not total([paused, open_]).paused


def test_a_sum_of_totals_keeps_each_in_its_place() -> None:
    assert Totals(1, 2, 3, 4, 5, 6).plus(Totals(10, 20, 30, 40, 50, 60)) == Totals(11, 22, 33, 44, 55, 66)


def test_an_empty_queue_has_no_oldest_job() -> None:
    assert total([QueueStats("a", oldest_waiting=None)]).oldest_waiting is None
    assert total([QueueStats("a", oldest_waiting=datetime(2026, 1, 1, tzinfo=UTC))]).oldest_waiting is not None
