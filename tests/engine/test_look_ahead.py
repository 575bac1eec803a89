from windlass.engine.claim_plan import MOST, LookAhead


def test_a_server_that_has_finished_nothing_looks_not_ahead() -> None:
    look_ahead = LookAhead()

    assert look_ahead.most(0.0, 0) == 0
    assert look_ahead.most(5.0, 0) == 0


def test_it_allows_what_is_finished_in_a_tenth_of_a_second_at_the_rate_of_the_last_one() -> None:
    look_ahead = LookAhead()
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.05, 7) == 14
    assert look_ahead.most(0.1, 9) == 9
    assert look_ahead.most(0.13, 19) == 15
    assert look_ahead.most(0.5, 19) == 0


def test_the_rate_of_a_moment_counts_for_no_more_than_ten_times_what_was_finished() -> None:
    look_ahead = LookAhead()
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.0001, 7) == 70


def test_it_has_a_bound() -> None:
    look_ahead = LookAhead()
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.01, 10 * MOST) == MOST


def test_where_claims_take_long_it_allows_what_is_finished_during_two_of_them() -> None:
    look_ahead = LookAhead()
    look_ahead.took(0.25)
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.25, 50) == 100
    assert look_ahead.most(0.5, 100) == 100


def test_a_claim_that_took_very_long_counts_as_half_a_second() -> None:
    look_ahead = LookAhead()
    look_ahead.took(60.0)
    look_ahead.most(0.0, 0)

    assert look_ahead.most(1.0, 50) == 50
    assert look_ahead.most(10.0, 50) == 0
