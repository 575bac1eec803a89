from windlass.demo.difference import Kind
from windlass.demo.ledger import Event, What
from windlass.demo.ticks import Span, check_ticks, spans, surely_seen

ALIVE = [Event(What.UP, "w1", at=1000.0), Event(What.STOPPED, "w1", at=1035.0)]


def kinds(fired: list[float], events: list[Event]) -> list[Kind]:
    return [difference.kind for difference in check_ticks(fired, events)]


def test_every_tick_at_which_a_server_was_alive_makes_one_job() -> None:
    assert kinds([1010.0, 1020.0, 1030.0], ALIVE) == []


def test_a_tick_that_made_two_jobs_is_found() -> None:
    assert kinds([1010.0, 1020.0, 1020.0, 1030.0], ALIVE) == [Kind.TICK_TWICE]


def test_a_tick_that_made_none_is_found() -> None:
    assert kinds([1010.0, 1030.0], ALIVE) == [Kind.TICK_MISSING]


def test_a_job_for_a_time_that_is_no_tick_is_found() -> None:
    assert kinds([1010.0, 1013.0, 1020.0, 1030.0], ALIVE) == [Kind.TICK_WRONG]


def test_a_job_for_a_tick_before_the_first_server_is_found() -> None:
    assert kinds([990.0, 1010.0, 1020.0, 1030.0], ALIVE) == [Kind.TICK_WRONG]


def test_a_tick_may_be_missed_just_after_the_start_and_just_before_the_stop() -> None:
    events = [Event(What.UP, "w1", at=1009.0), Event(What.STOPPED, "w1", at=1021.0)]

    assert kinds([], events) == []
    assert kinds([1010.0, 1020.0], events) == []


def test_a_tick_that_nobody_saw_may_be_caught_up_by_the_next_server() -> None:
    events = [
        Event(What.UP, "w1", at=1000.0),
        Event(What.KILLED, "w1", at=1019.0),
        Event(What.UP, "w2", at=1021.0),
        Event(What.STOPPED, "w2", at=1025.0),
    ]

    assert kinds([1010.0], events) == []
    assert kinds([1010.0, 1020.0], events) == []


def test_a_paused_server_sees_nothing() -> None:
    events = [
        Event(What.UP, "w1", at=1000.0),
        Event(What.PAUSED, "w1", at=1004.0),
        Event(What.RESUMED, "w1", at=1016.0),
        Event(What.POISONED, "w1", at=1024.0),
    ]

    assert list(spans(events)) == [Span(1000.0, 1004.0), Span(1016.0, 1024.0)]
    assert kinds([1020.0], events) == []


def test_a_server_that_nobody_ended_lives_until_the_last_line() -> None:
    events = [Event(What.UP, "w1", at=1000.0), Event(What.STARTED, "w1", "a", 1, at=1030.0)]

    assert list(spans(events)) == [Span(1000.0, 1030.0)]
    assert surely_seen(list(spans(events))) == {1010.0, 1020.0}
