"""What a signal does to `windlass worker`: each row of the table in the reference."""

import os
import signal
import time
from pathlib import Path

import pytest

from proofs.children import eventually
from proofs.serving import lives
from tests.parent.given import Running, enqueue, jobs, servers

SPARE = 5.0
"""Seconds beyond the grace, which is one on a machine that is not busy: `proofs/kills/signals.py` shows that."""
ON_A_TERMINAL = """
import os, sys
os.login_tty(os.open(sys.argv[1], os.O_RDWR))
os.execv(sys.executable, [sys.executable, "-m", "windlass", *sys.argv[2:]])
"""
FIRST = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("number", FIRST, ids=lambda number: number.name)
def test_the_first_signal_lets_jobs_finish(tmp_path: Path, number: signal.Signals) -> None:
    """With jobs under way."""
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path, "--shutdown-timeout", "20s") as running:
        running.noted("began-go")

        running.signal(number)
        running.says("1 job running")
        (tmp_path / "go").touch()

        assert running.ends() == 0
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert servers(tmp_path) == []
    assert running.log().endswith("stopped\n")


@pytest.mark.parametrize(
    "first, second, code",
    [
        (signal.SIGTERM, signal.SIGTERM, 143),
        (signal.SIGINT, signal.SIGINT, 130),
        (signal.SIGTERM, signal.SIGINT, 130),
        (signal.SIGINT, signal.SIGHUP, 129),
        (signal.SIGTERM, signal.SIGQUIT, 131),
    ],
)
def test_the_second_signal_stops_at_once_and_costs_no_attempt(
    tmp_path: Path, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    """Each pair with its exit code."""
    enqueue(tmp_path, "wait_for_file", {"name": "never"})
    with Running(tmp_path, "--shutdown-timeout", "60s") as running:
        running.noted("began-never")
        running.signal(first)
        running.says("1 job running")

        sent_at = running.signal(second)

        assert running.ends() == code
        assert time.monotonic() - sent_at < SPARE
    assert jobs(tmp_path) == [("pending", 0, 1)]
    assert servers(tmp_path) == []


def test_sigquit_stops_at_once(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "never"})
    with Running(tmp_path, "--shutdown-timeout", "60s") as running:
        running.noted("began-never")

        sent_at = running.signal(signal.SIGQUIT)

        assert running.ends() == 131
        assert time.monotonic() - sent_at < SPARE
    assert jobs(tmp_path) == [("pending", 0, 1)]


@pytest.mark.parametrize("kind", ["hang", "ignore_cancel", "wait_for_file", "block_for_ever"])
def test_what_does_not_end_in_its_grace_is_given_back(tmp_path: Path, kind: str) -> None:
    """Threads too, and coroutines that do not heed their cancel or block the loop: their process ends at once."""
    arguments: dict[str, dict[str, object]] = {"hang": {"seconds": 600}, "wait_for_file": {"name": "never"}}
    notes = {"hang": "began-hang", "wait_for_file": "began-never", "ignore_cancel": "began-ignore"}
    enqueue(tmp_path, kind, arguments.get(kind))
    with Running(tmp_path, "--shutdown-timeout", "300ms") as running:
        running.noted(notes.get(kind, "began-block"))

        sent_at = running.signal(signal.SIGTERM)

        assert running.ends() == 0
        assert 0.3 < time.monotonic() - sent_at < 0.3 + SPARE
    assert jobs(tmp_path) == [("pending", 0, 1)]
    assert servers(tmp_path) == []


def test_a_child_that_does_not_end_is_killed(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "never"})
    with Running(tmp_path, "--shutdown-timeout", "200ms") as running:
        os.kill(running.noted("began-never"), signal.SIGSTOP)

        sent_at = running.signal(signal.SIGTERM)

        assert running.ends() == 0
        assert 1 < time.monotonic() - sent_at < 0.2 + SPARE
    assert "does not end: it is killed" in running.log()


def test_more_signals_do_not_put_off_the_end_of_a_child_that_is_stopped(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "never"})
    with Running(tmp_path, "--shutdown-timeout", "60s") as running:
        child = running.noted("began-never")
        os.kill(child, signal.SIGSTOP)

        def ends_by_another_signal() -> bool:
            running.signal(signal.SIGTERM)
            return running.process.poll() is not None

        assert eventually(ends_by_another_signal, SPARE), running.log()
        # the last one may come when its event loop is closed already, and is what ends it then
        assert running.ends() in {143, -signal.SIGTERM}
    assert "does not end: it is killed" in running.log()


def test_an_app_that_leaves_threads_behind_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    enqueue(tmp_path, "leave_a_thread_behind")
    with Running(tmp_path, "--shutdown-timeout", "200ms") as running:
        running.noted("began-thread")

        sent_at = running.signal(signal.SIGTERM)

        assert running.ends() == 0
        assert time.monotonic() - sent_at < 0.2 + SPARE


def test_what_the_app_has_registered_for_the_end_of_the_interpreter_is_done(tmp_path: Path) -> None:
    source = """
import atexit, pathlib, windlass
app = windlass.App("memory://")
atexit.register(pathlib.Path("said-goodbye").touch)
"""
    (tmp_path / "polite.py").write_text(source)
    with Running(tmp_path, app="polite:app") as running:
        running.says("ready: ")

        running.signal(signal.SIGTERM)

        assert running.ends() == 0
    assert (tmp_path / "said-goodbye").exists()


def test_an_interrupt_from_a_terminal_reaches_the_whole_group_and_is_graceful(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path, "--processes", "2") as running:
        running.noted("began-go")

        running.children()
        os.killpg(running.process.pid, signal.SIGINT)
        running.says("1 job running")
        (tmp_path / "go").touch()

        assert running.ends() == 0
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert "Traceback" not in running.log()


def test_the_end_of_the_terminal_is_graceful_although_the_log_has_nowhere_to_go(tmp_path: Path) -> None:
    (tmp_path / "on_a_terminal.py").write_text(ON_A_TERMINAL)
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    ours, theirs = os.openpty()
    with Running(tmp_path, wrapper=("on_a_terminal.py", os.ttyname(theirs))) as running:
        running.noted("began-go")
        running.children()

        os.close(theirs)
        os.close(ours)
        (tmp_path / "go").touch()

        assert running.ends() == 0
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert servers(tmp_path) == []


def test_a_signal_before_the_app_is_loaded_ends_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    with Running(tmp_path, app="slow:app") as running:
        assert eventually((tmp_path / "loading").exists, 20)

        sent_at = running.signal(signal.SIGTERM)

        assert running.ends() == 0
        assert time.monotonic() - sent_at < SPARE


def test_a_hangup_is_left_alone_under_nohup(tmp_path: Path) -> None:
    with Running(tmp_path, hangup=signal.SIG_IGN) as running:
        running.says("ready")

        running.signal(signal.SIGHUP)
        running.signal(signal.SIGTERM)

        assert running.ends() == 0
    assert "SIGHUP" not in running.log()


def test_a_child_that_is_told_by_sigterm_finishes_its_job_and_is_replaced(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path) as running:
        child = running.noted("began-go")

        os.kill(child, signal.SIGTERM)
        running.says("1 job running")
        (tmp_path / "go").touch()
        running.says("ready", 2)

        assert child not in running.children()
        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert "ended with exit code 0" in running.log()


def test_children_stop_gracefully_when_their_parent_is_killed(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path, "--processes", "2") as running:
        running.noted("began-go")
        running.says("ready")
        children = running.children()

        running.process.kill()
        running.says("the parent process has ended")
        (tmp_path / "go").touch()

        assert len(children) == 2
        assert eventually(lambda: not any(map(lives, children)), 10), running.log()
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert servers(tmp_path) == []


def test_children_that_stop_go_on_with_it_when_their_parent_is_killed_meanwhile(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path) as running:
        child = running.noted("began-go")
        running.signal(signal.SIGTERM)
        running.says("1 job running")

        running.process.kill()
        running.says("the parent process has ended")
        (tmp_path / "go").touch()

        assert eventually(lambda: not lives(child), 10), running.log()
    assert jobs(tmp_path) == [("succeeded", 1, 1)]
    assert servers(tmp_path) == []


def test_children_whose_loop_is_blocked_end_with_their_parent(tmp_path: Path) -> None:
    enqueue(tmp_path, "block_the_loop", {"seconds": 600})
    with Running(tmp_path, "--shutdown-timeout", "100ms") as running:
        child = running.noted("began-block")

        running.process.kill()

        assert eventually(lambda: not lives(child), 10), running.log()


def test_children_end_with_their_parent_although_nobody_reads_the_log(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x")
        except BlockingIOError:
            break
    os.set_blocking(write, True)
    with Running(tmp_path, "--shutdown-timeout", "100ms", stderr=write) as running:
        child = running.noted("opened")

        running.process.kill()

        assert eventually(lambda: not lives(child), SPARE)
    os.close(read)
    os.close(write)
