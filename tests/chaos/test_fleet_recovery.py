"""How the return of a fleet to its usual rate is measured."""

import pytest

from proofs.fleet.recovery import rate, recovery

ENDS = [10.0 + tenth / 10 for tenth in range(100)]
"""Ten jobs a second from the tenth second on."""


def test_a_rate_is_taken_over_the_span_that_begins_then() -> None:
    assert (rate(ENDS, 8.0), rate(ENDS, 9.05), rate(ENDS, 12.05)) == (0.5, 5.5, 10.0)


def test_the_usual_rate_is_back_where_a_span_of_it_begins() -> None:
    assert recovery(ENDS, 7.0, 20.0, 10.0) == pytest.approx(2.8)


def test_what_never_came_back_before_the_next_outage_is_told_as_such() -> None:
    assert recovery(ENDS, 9.0, 11.5, 10.0) is None
    assert recovery(ENDS, 9.0, 20.0, 12.0) is None
