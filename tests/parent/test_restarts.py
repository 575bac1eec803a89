import os
import signal
import time
from pathlib import Path

import pytest

from proofs.children import eventually
from tests.parent.given import Running, enqueue, jobs, servers
from windlass.parent.child_process import ChildProcess, how_it_ended
from windlass.parent.messages import Order
from windlass.parent.parent import Parent
from windlass.parent.restarts import LIVED_WELL, Restarts


def test_the_first_death_is_followed_by_a_start_at_once_and_more_of_them_later_and_later() -> None:
    restarts = Restarts()

    waits = [restarts.after(1, draw=0.5) for _ in range(9)]

    assert waits == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_child_that_lived_well_has_earlier_deaths_forgotten() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.after(1, draw=0.5)

    assert restarts.after(LIVED_WELL, draw=0.5) == 0
    assert restarts.after(1, draw=0.5) == 0.5


@pytest.mark.parametrize("draw", [0.0, 0.25, 0.999])
def test_chance_keeps_the_wait_between_half_a_second_and_half_a_minute(draw: float) -> None:
    restarts = Restarts()

    waits = [restarts.after(0, draw=draw) for _ in range(100)][1:]

    assert min(waits) > 0.3
    assert max(waits) <= 30


@pytest.mark.parametrize(
    "code, said",
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "SIGKILL"), (-11, "SIGSEGV"), (-1000, "signal 1000")],
)
def test_how_a_child_ended_is_said_in_words(code: int, said: str) -> None:
    assert said in how_it_ended(code)


def test_a_killed_child_is_told_of_and_started_again_and_its_jobs_are_back_at_once(tmp_path: Path) -> None:
    """The lease is an hour, and no service looks for servers that have ended: the parent's word alone does it."""
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    options = ("--processes", "2", "--rescue-interval", "1h", "--json")
    with Running(tmp_path, *options) as running:
        first = running.noted("began-go")
        running.says('"ready: ')
        [sibling] = [child for child in running.children() if child != first]

        os.kill(first, signal.SIGKILL)
        running.noted("began-go", 2)
        (tmp_path / "go").touch()
        running.says('"ready: ', 2)

        [rescue] = [record for record in running.records() if "had ended" in record["message"]]
        [death] = [record for record in running.records() if "SIGKILL" in record["message"]]
        assert rescue["pid"] == sibling
        assert (death["level"], death["pid"]) == ("error", running.process.pid)
        assert (
            f"child {first} (server tasks" in death["message"] or f"child {first} (server windlass" in death["message"]
        )
        assert "another one is started at once" in death["message"]
        assert len(running.children()) == 2
        assert len(servers(tmp_path)) == 2
        assert eventually(lambda: jobs(tmp_path) == [("succeeded", 2, 2)])
        running.signal(signal.SIGTERM)
        assert running.ends() == 0


def test_the_successor_gives_back_what_the_only_child_held(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path, "--services", "off") as running:
        first = running.noted("began-go")

        os.kill(first, signal.SIGKILL)
        running.noted("began-go", 2)

        (tmp_path / "go").touch()
        assert eventually(lambda: jobs(tmp_path) == [("succeeded", 2, 2)])
        assert eventually(lambda: len(servers(tmp_path)) == 1)
        running.signal(signal.SIGTERM)
        assert running.ends() == 0


def test_what_children_held_that_died_together_is_given_back_by_their_successors(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"}, times=4)
    with Running(tmp_path, "--processes", "2", "--concurrency", "2", "--services", "off") as running:
        running.noted("began-go", 4)
        victims = running.children()

        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        running.noted("began-go", 8)

        (tmp_path / "go").touch()
        assert len(victims) == 2
        assert eventually(lambda: jobs(tmp_path) == [("succeeded", 2, 2)] * 4), jobs(tmp_path)
        assert eventually(lambda: len(servers(tmp_path)) == 2)
        running.signal(signal.SIGTERM)
        assert running.ends() == 0


def test_a_start_that_the_system_refuses_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    order = Order(app="tasks:app", flags={}, processes=1, grace=0, log_format="human", log_level="info")
    tries: list[float] = []

    def start(_: int) -> ChildProcess:
        tries.append(time.monotonic())
        if len(tries) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        message = "no room for another process"
        raise OSError(message)

    assert Parent(order, start, draw=lambda: 0.5).run() == 0

    told = [each.getMessage() for each in caplog.records if each.name == "windlass" and each.levelname == "ERROR"]
    assert told[1] == "no child can be started, again in 0.5 s: no room for another process"
    assert tries[2] - tries[1] >= 0.5


def test_a_signal_is_heard_before_all_children_are_started() -> None:
    order = Order(app="tasks:app", flags={}, processes=1_000, grace=0, log_format="human", log_level="info")
    tries: list[float] = []

    def start(_: int) -> ChildProcess:
        tries.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)
        message = "no room for another process"
        raise OSError(message)

    assert Parent(order, start, draw=lambda: 0.5).run() == 0

    assert len(tries) == 1


def test_a_child_that_keeps_dying_is_started_later_and_later(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    with Running(tmp_path, app="dies:app") as running:
        running.says("SIGSEGV", 3)

        running.signal(signal.SIGTERM)

        assert running.ends() == 0
    deaths = [line for line in running.log().splitlines() if "SIGSEGV" in line]
    assert "started at once" in deaths[0]
    assert "started in 0." in deaths[1]
    assert "started in 0." in deaths[2] or "started in 1." in deaths[2]
