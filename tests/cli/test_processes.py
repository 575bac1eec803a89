"""The command line as others start it: a process of its own, with pipes, signals and no terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL
from windlass.cli import main

COMMAND = [sys.executable, "-m", "windlass"]
PLAIN = {
    # neither settings of ours, nor what would make an interpreter write at once
    name: value
    for name, value in os.environ.items()
    if not name.startswith("WINDLASS_") and name != "PYTHONUNBUFFERED"
}
ANSI = re.compile(r"\x1b\[[0-9;]*m")
SEEN = """
import sys
from windlass.cli import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules} & {"click", "rich", "msgspec", "asyncio"}),
          *[name for name in sys.modules if name in ("windlass.app.app", "windlass.connect")], file=sys.stderr)
"""


def call(*args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *args], check=False, capture_output=True, text=True, timeout=60, env={**PLAIN, **env}
    )


def test_the_entry_point_is_the_same_program() -> None:
    [point] = entry_points(group="console_scripts", name="windlass")

    assert point.load() is main
    assert call("--version").stdout == f"windlass {windlass.__version__}\n"


def test_an_import_of_the_library_loads_nothing_of_the_command_line() -> None:
    program = "import sys, windlass; windlass.App; windlass.connect; windlass.Server; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert not {"click", "rich", "windlass.cli"} & set(loaded)


@pytest.mark.parametrize(
    "words,seen",
    [(["--help"], "click"), (["--version"], "click"), (["schedules", "nonsense"], "asyncio click msgspec")],
)
def test_a_command_loads_only_what_it_needs(words: list[str], seen: str) -> None:
    done = subprocess.run([sys.executable, "-c", SEEN, *words], check=False, capture_output=True, text=True, env=PLAIN)

    loaded = [name for name in done.stderr.splitlines()[-1].split() if not name.startswith("windlass")]
    assert " ".join(loaded) == seen


def test_without_a_terminal_there_are_no_colours_and_no_boxes() -> None:
    done = call("config", TERM="xterm-256color")

    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()


def on_a_terminal(*args: str, **env: str) -> str:
    ours, theirs = pty.openpty()
    environ = {**PLAIN, "TERM": "xterm-256color", "COLUMNS": "100", **env}
    with subprocess.Popen([*COMMAND, *args], stdout=theirs, stderr=subprocess.DEVNULL, env=environ) as process:
        os.close(theirs)
        seen = b""
        # when the other side of a terminal is gone, reading from it is an error
        with suppress(OSError):
            while part := os.read(ours, 65536):
                seen += part
        os.close(ours)
        assert process.wait(30) == 0
    return seen.decode()


def test_on_a_terminal_a_table_is_drawn() -> None:
    seen = on_a_terminal("config")

    assert "─" in seen
    assert "\x1b[1m" in seen


def test_on_a_terminal_there_are_colours_unless_nobody_wants_them() -> None:
    with windlass.connect_sync(URL) as client:
        client.schedules.put("nightly", "@daily", windlass.NewJob("q"))

    for command in ("doctor", "schedules"):
        assert "\x1b[32m" in on_a_terminal(command, "--url", URL)
        assert "\x1b[32m" not in on_a_terminal(command, "--url", URL, NO_COLOR="1")


@pytest.mark.parametrize("columns", ["40", "80", "120", "200"])
def test_no_line_is_wider_than_the_terminal(columns: str) -> None:
    with windlass.connect_sync(URL) as client:
        job = windlass.NewJob("a-queue-with-a-long-name", kind="a_kind_with_a_long_name")
        client.schedules.put(
            "a-schedule-with-a-rather-long-id", "0,15,30,45 9-17 * * 1-5", job, timezone="Asia/Kolkata"
        )

    for command in ("doctor", "schedules", "config"):
        seen = ANSI.sub("", on_a_terminal(command, *(() if command == "config" else ("--url", URL)), COLUMNS=columns))
        assert max(map(len, seen.splitlines())) <= max(int(columns), 60), seen


@pytest.mark.parametrize(
    "typed, code, left",
    [(b"y\n", 0, 0), (b"n\n", 1, 2), (b"\n", 1, 2), (b"\x04", 130, 2)],
    ids=["yes", "no", "nothing", "end"],
)
def test_a_person_is_asked_before_many_jobs_are_changed(typed: bytes, code: int, left: int) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue_many([windlass.NewJob("mail")] * 2)
    ours, theirs = pty.openpty()
    os.write(ours, typed)

    words = [*COMMAND, "jobs", "cancel", "--queue", "mail", "--json", "--url", URL]
    done = subprocess.run(
        words, check=False, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, timeout=60, env=PLAIN
    )

    seen = os.read(ours, 65536).decode()
    os.close(theirs)
    os.close(ours)
    assert "Cancel 2 jobs (queue mail)? [y/N]: " in seen
    assert (done.returncode, "nothing was done" in seen) == (code, code != 0)
    # what is asked does not spoil what a program reads
    assert (json.loads(done.stdout)["changed"] == 2) if left == 0 else (done.stdout == b"")
    with windlass.connect_sync(URL) as client:
        assert client.stats("mail").pending == left


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    ours, theirs = os.pipe()
    os.close(ours)

    with os.fdopen(theirs, "w") as closed:
        done = subprocess.run([*COMMAND, "config"], check=False, stdout=closed, stderr=subprocess.PIPE, env=PLAIN)

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk to write to")
def test_a_document_that_could_not_be_written_is_no_success() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "config", "--json"], check=False, stdout=full, stderr=subprocess.PIPE, env=PLAIN
        )

    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")


def test_ctrl_c_ends_a_wait_and_says_that_the_job_stays_in_line() -> None:
    words = ["enqueue", "--queue", "q", "--payload", "x", "--wait", "60", "--url", URL]
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # the id is told before the wait begins
        job_id = process.stdout.readline().decode().strip()

        process.send_signal(signal.SIGINT)

        assert process.wait(30) == 130
        told = f"note: job {job_id} stays in line: see windlass jobs show {job_id}\n"
        assert process.stderr.read().decode() == told

    with windlass.connect_sync(URL) as client:
        job = client.get(job_id)
        assert job is not None
        assert job.state == "pending"


def test_warnings_of_the_library_are_lines_on_stderr() -> None:
    done = call("config", "--json", WINDLASS_LEES="3")

    assert done.stderr == "warning: WINDLASS_LEES is no setting: did you mean WINDLASS_LEASE?\n"
    assert json.loads(done.stdout)["unknown"]


def test_text_that_the_terminal_has_no_letters_for_ends_nothing() -> None:
    with windlass.connect_sync(URL) as client:
        client.schedules.put("x", "@daily", windlass.NewJob("q", "日本".encode()))

    done = call("schedules", "show", "x", "--url", URL, PYTHONIOENCODING="latin-1")

    assert done.returncode == 0
    assert "payload       \\u65e5\\u672c" in done.stdout


@pytest.mark.parametrize(
    "typed,offered",
    [("windlass sch", "schedules"), ("windlass schedules res", "resume"), ("windlass doctor --str", "--strict")],
)
def test_a_shell_can_complete_what_is_typed(typed: str, offered: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}

    done = call(**words, _WINDLASS_COMPLETE="bash_complete")

    assert done.stdout == f"plain,{offered}\n"
