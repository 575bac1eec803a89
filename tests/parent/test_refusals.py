"""What ends the whole command, and what is tried again."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parent.given import Running, enqueue, jobs

MEMORY = "import windlass\napp = windlass.App('memory://')\n"
RAISES = "raise RuntimeError('no such thing')\n"


@pytest.mark.parametrize(
    "source, options, code, said",
    [
        (MEMORY, ("--processes", "2"), 2, "memory:// is worked by one process"),
        (MEMORY, ("--dead-after", "1s"), 2, "must be longer than heartbeat_interval"),
        (MEMORY, ("--lease", "soon"), 2, "--lease: lease must be a number of seconds"),
        (RAISES, (), 3, "RuntimeError: no such thing"),
        ("app = 1\n", (), 3, "is no App"),
        ("import windlass\napp = windlass.App()\n", (), 2, "has no store"),
        (MEMORY + "app.lifespan(lambda: 3)\n", (), 2, "<lambda>() returned an object of type int"),
        (MEMORY, ("--url", "sqlite:////proc/no/jobs.db"), 5, "/proc/no/jobs.db"),
    ],
)
def test_a_refusal_ends_the_command_with_its_exit_code(
    tmp_path: Path, source: str, options: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "refused.py").write_text(source)
    with Running(tmp_path, *options, app="refused:app") as running:
        assert running.ends() == code

    assert said in running.log()
    assert "another one is started" not in running.log()


def test_without_an_app_the_command_says_how_to_name_one(tmp_path: Path) -> None:
    with Running(tmp_path, app="") as running:
        assert running.ends() == 2

    assert "windlass worker tasks:app" in running.log()


def test_what_the_app_opens_may_be_away_and_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with Running(tmp_path) as running:
        running.says("the server cannot start (1 times in a row)")
        (tmp_path / "broken").unlink()

        running.says("ready: ")

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert "RuntimeError: what the app needs is away" in running.log()


@pytest.mark.slow
def test_a_store_that_nobody_can_reach_is_told_of_before_the_deadline(tmp_path: Path) -> None:
    with Running(tmp_path, "--url", "redis://me:secret@127.0.0.1:1?timeout=1.5") as running:
        running.says("nothing listens where the server at 127.0.0.1:1 should be")
        running.says("it is tried for 0.5 s more")
        running.says("the server cannot start (1 times in a row)")

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert "secret" not in running.log()


def test_a_stop_ends_the_tries(tmp_path: Path) -> None:
    """While what the app needs is away."""
    (tmp_path / "broken").touch()
    with Running(tmp_path) as running:
        running.says("cannot start")

        running.signal(signal.SIGTERM)

        assert running.ends() == 0


def test_a_store_that_is_away_is_tried_again(tmp_path: Path) -> None:
    source = """
import windlass
from windlass.connect import open_store
from windlass.core.errors import StoreUnavailable
from pathlib import Path

store = open_store("memory://")
opens = store.open

async def open_later():
    if not Path("there").exists():
        raise StoreUnavailable("nobody answers", retryable=True)
    await opens()

store.open = open_later
app = windlass.App(store)
"""
    (tmp_path / "away.py").write_text(source)
    with Running(tmp_path, app="away:app") as running:
        running.says("nobody answers")
        (tmp_path / "there").touch()

        running.says("ready: ")

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert "Traceback" not in running.log()


def test_with_stop_on_error_an_error_of_the_store_ends_the_command(tmp_path: Path) -> None:
    with Running(tmp_path, "--stop-on-error", "on", "--poll-interval", "50ms", "--processes", "2") as running:
        running.says("ready: ")

        (tmp_path / "jobs.db").unlink()

        assert running.ends() == 5
    assert "deleted or replaced" in running.log()


def test_with_stop_on_error_an_app_that_cannot_open_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with Running(tmp_path, "--stop-on-error", "on") as running:
        assert running.ends() == 1

    assert "what the app needs is away" in running.log()


def test_flags_reach_the_processes_that_handlers_run_in(tmp_path: Path) -> None:
    source = """
import windlass, os
from pathlib import Path
app = windlass.App("memory://")

@app.job(process=True)
def look(ctx: windlass.Context) -> None:
    Path("seen").write_text(app.config.value("url"))
"""
    (tmp_path / "far.py").write_text(source)
    url = f"sqlite:///{tmp_path}/jobs.db"
    enqueue(tmp_path, "look")
    with Running(tmp_path, "--url", url, app="far:app", environment={"WINDLASS_URL": "memory://"}) as running:
        running.says("succeeded")

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert (tmp_path / "seen").read_text() == url
    assert jobs(tmp_path) == [("succeeded", 1, 1)]


def test_a_child_without_a_parent_ends_at_once(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    command = [sys.executable, "-m", "windlass.parent", "tasks:app", str(ours.fileno())]

    with ours:
        done = subprocess.run(
            command, pass_fds=(ours.fileno(),), cwd=tmp_path, capture_output=True, timeout=20, check=False
        )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_queue_that_no_handler_is_for_is_warned_of(tmp_path: Path) -> None:
    with Running(tmp_path, "--queues", "default,defualt,nosuch", "--processes", "2") as running:
        running.says("ready")
        running.signal(signal.SIGTERM)

        assert running.ends() == 0
    assert running.log().count("no handler of the app is for queue 'nosuch'") == 1
    assert "no handler of the app is for queue 'defualt' (did you mean 'default'?): only" in running.log()
    assert "queue 'default'" not in running.log()
