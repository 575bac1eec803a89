from pathlib import Path

import pytest

from tests.demo.given import EVENTS
from windlass.demo import ledger
from windlass.demo.ledger import Event, Follower, Ledger, TornLine, What
from windlass.demo.lookout import Tally


def test_a_ledger_is_read_as_it_was_written_and_followed_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    events = [Event(What.UP, "w1", at=1.0), Event(What.STARTED, "w1", "a", 1, "send_email", at=2.0)]
    pen = Ledger(path)
    follower = Follower(path)

    pen.write(events[0])
    first = follower.news()
    pen.write(events[1])
    second = follower.news()
    pen.close()

    assert (first, second) == (events[:1], events[1:])
    assert ledger.read(path) == events


def test_an_event_without_a_time_gets_that_of_its_writing(tmp_path: Path) -> None:
    pen = Ledger(tmp_path / "ledger")

    pen.write(Event(What.UP, "w1"))
    pen.close()

    [event] = ledger.read(tmp_path / "ledger")
    assert event.at > 0


def test_half_a_line_is_left_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    follower = Follower(path)
    path.write_bytes(b'{"what":"up","worker":"w1"}\n{"what":"u')

    first = follower.news()
    path.write_bytes(b'{"what":"up","worker":"w1"}\n{"what":"up","worker":"w2"}\n')
    second = follower.news()

    assert (first, second) == ([Event(What.UP, "w1")], [Event(What.UP, "w2")])


def test_a_torn_line_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b'{"what":"clai')

    with pytest.raises(TornLine, match="no event"):
        ledger.read(path)


def test_a_tally_knows_who_runs_what_and_who_died() -> None:
    tally = Tally()

    tally.add(EVENTS)

    assert tally.running["w1"].keys() == {("b", 1)}
    assert tally.accepted["w1"] == {("a", 1), ("m", 2)}
    assert tally.runners["c"] == ["w2", "w3"]
    assert [death.worker for death in tally.deaths] == ["w4", "w5", "w6"]
