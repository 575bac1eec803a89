from windlass.engine.look_ahead import MOST, LookAhead


def test_a_server_that_has_finished_nothing_looks_not_ahead() -> None:
    look_ahead = LookAhead()

    assert look_ahead.most(0.0, 0) == 0
    assert look_ahead.most(5.0, 0) == 0


def test_it_allows_what_was_finished_in_the_last_tenth_of_a_second() -> None:
    look_ahead = LookAhead()
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.05, 7) == 7
    assert look_ahead.most(0.12, 9) == 2
    assert look_ahead.most(0.5, 9) == 0


def test_it_has_a_bound() -> None:
    look_ahead = LookAhead()
    look_ahead.most(0.0, 0)

    assert look_ahead.most(0.01, 10 * MOST) == MOST
