"""Processes that a handler forks: signals to them are theirs alone."""

import signal
from pathlib import Path

import pytest

from tests.parent.given import Running, enqueue, jobs


@pytest.mark.parametrize("kind", ["end_a_fork", "end_a_fork_far_away"])
def test_a_signal_to_a_process_that_a_handler_forked_ends_it_and_stops_nothing_else(tmp_path: Path, kind: str) -> None:
    enqueue(tmp_path, kind)
    with Running(tmp_path) as running:
        running.noted("fork-ended-by--15")
        running.signal(signal.SIGTERM)

        assert running.ends() == 0
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert running.log().count("ready: ") == 1
