from dataclasses import replace
from datetime import UTC, datetime, timedelta

from windlass.core.looks import ServerRecord
from windlass.core.stats import QueueStats
from windlass.http.dashboard.concerns import MOST, PATIENCE, Servers, concerns

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_DUE = NOW - PATIENCE


def a_server(*queues: str, silent_for: float = 0.0) -> ServerRecord:
    seen_at = NOW - timedelta(seconds=silent_for)
    return ServerRecord("id", "name", "host", 1, "1", started_at=NOW, seen_at=seen_at, queues=queues)


def found(*queues: QueueStats, servers: tuple[ServerRecord, ...] = (), sees_all: bool = True) -> list[tuple[str, str]]:
    shown = concerns(queues, Servers(NOW, servers), sees_all=sees_all).shown
    return [(each.what, each.name) for each in shown]


def test_jobs_that_wait_where_no_live_server_works_are_told_of() -> None:
    left = QueueStats("left", pending=2, oldest_waiting=LONG_DUE)
    worked = QueueStats("worked", pending=2, oldest_waiting=LONG_DUE)

    assert found(left, worked, servers=(a_server("worked"),)) == [("unworked", "left")]


def test_a_silent_server_works_on_nothing() -> None:
    left = QueueStats("left", pending=2, oldest_waiting=LONG_DUE)

    assert found(left, servers=(a_server("left", silent_for=60),)) == [("unworked", "left"), ("silent", "name")]


def test_a_server_that_stops_works_on_nothing_more() -> None:
    left = QueueStats("left", pending=2, oldest_waiting=LONG_DUE)
    stopping = replace(a_server("left"), details={"stopping": "yes"})

    assert found(left, servers=(stopping,)) == [("unworked", "left")]


def test_what_is_taken_or_has_just_come_is_no_concern() -> None:
    claimed = QueueStats("claimed", pending=2, running=1, oldest_waiting=LONG_DUE)
    new = QueueStats("new", pending=2, oldest_waiting=LONG_DUE + timedelta(seconds=1))
    empty = QueueStats("empty")

    assert found(claimed, new, empty) == []


def test_a_paused_queue_is_told_of_while_jobs_wait_in_it() -> None:
    assert found(QueueStats("held", paused=True, pending=1), QueueStats("idle", paused=True)) == [("paused", "held")]


def test_who_does_not_see_all_servers_is_told_of_none() -> None:
    left = QueueStats("left", pending=2, oldest_waiting=LONG_DUE)
    held = QueueStats("held", paused=True, pending=1)

    assert found(left, held, servers=(a_server(silent_for=99),), sees_all=False) == [("paused", "held")]


def test_only_the_first_are_named_and_the_others_counted() -> None:
    queues = [QueueStats(f"q{number:04}", paused=True, pending=1) for number in range(1_000)]

    told = concerns(queues, Servers(NOW, []), sees_all=True)

    assert (len(told.shown), told.more) == (MOST, 1_000 - MOST)


def test_a_live_server_whose_jobs_did_not_end_at_their_timeout_is_told_of() -> None:
    held_up = replace(a_server(), details={"stuck": "one, two, one"})
    ended = replace(a_server(silent_for=60), details={"stuck": "one"})

    shown = concerns([], Servers(NOW, [held_up, ended]), sees_all=True).shown

    # each attempt of a job holds a slot of its own
    assert [(each.what, each.jobs) for each in shown] == [("stuck", 2), ("silent", 0)]
