import io
import json
import logging
import pickle
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.parent.given import Running, enqueue
from windlass.parent.log_format import HumanFormatter, JsonFormatter, Logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def bare_root() -> Generator[logging.Logger]:
    """A root without the handlers of pytest, which has them again afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("windlass")
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield root
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        ours.handlers.clear()
        ours.setLevel(logging.NOTSET)


def record(message: str = "said", *args: object, **fields: Any) -> logging.LogRecord:  # noqa: ANN401 - as a record's
    made = logging.LogRecord("windlass", logging.INFO, "file.py", 1, message, args, None)
    made.created, made.process = 1_753_000_000.25, 42
    made.__dict__.update(fields)
    return made


def raised() -> Any:  # noqa: ANN401 - what sys.exc_info gives
    try:
        int("bad\x1b[31m")
    except ValueError:
        return sys.exc_info()


def test_a_line_for_people_has_time_level_and_message() -> None:
    assert HumanFormatter(coloured=False).format(record("%d jobs", 3)) == "2025-07-20 08:26:40.250Z INFO    3 jobs"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\rb", r"a\rb"),
        ("a\u202eb", r"a\u202eb"),
        ("a\x9bb", r"a\x9bb"),
        ("a\ud800b", r"a\ud800b"),
        ("héllo ☃", "héllo ☃"),
    ],
)
def test_what_a_terminal_would_obey_is_written_by_its_number(text: str, shown: str) -> None:
    assert HumanFormatter(coloured=False).format(record("%s", text)).endswith(f"INFO    {shown}")


def test_further_lines_stand_further_in_and_cannot_pose_as_records() -> None:
    lines = HumanFormatter(coloured=False).format(record("one\n2025-07-20 INFO two", exc_info=raised())).splitlines()

    assert lines[1] == "    2025-07-20 INFO two"
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1].startswith("    ValueError: invalid literal")
    assert "\x1b" not in lines[-1]


def test_a_json_line_has_the_facts_of_its_job() -> None:
    formatter = JsonFormatter(dict)
    formatter.server = "shop#1"
    facts = {"job_id": "j1", "kind": "send", "queue": "email", "seconds": None}

    told = json.loads(formatter.format(record("a\nb", windlass=facts, exc_info=raised())))

    assert "ValueError" in told.pop("exception")
    assert told == {
        "time": "2025-07-20T08:26:40.250Z",
        "level": "info",
        "logger": "windlass",
        "message": "a\nb",
        "pid": 42,
        "server": "shop#1",
        "job_id": "j1",
        "kind": "send",
        "queue": "email",
    }


def test_a_json_record_is_one_line_of_plain_letters() -> None:
    line = JsonFormatter(dict).format(record("a\n\u2028\x1b☃"))

    assert line.isascii()
    assert "\n" not in line


class Unspeakable:
    def __repr__(self) -> str:
        message = "no words"
        raise ValueError(message)


@pytest.mark.parametrize(
    "said",
    [
        record("%d jobs", "many"),
        record("%s", Unspeakable()),
        record("said", windlass={"seconds": float("nan")}),
        record("said", windlass={("a", "pair"): 1}),
        record("said", windlass={"error": Unspeakable()}),
        record("said", windlass="nothing of ours"),
        record("\ud800"),
    ],
)
def test_whatever_somebody_logs_is_one_valid_record(said: logging.LogRecord) -> None:
    line = JsonFormatter(dict).format(said)

    assert json.loads(line, parse_constant=pytest.fail)["logger"] == "windlass"
    assert "\n" not in line
    assert HumanFormatter(coloured=False).format(said)


@pytest.mark.parametrize(
    "stream, environment, coloured",
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
    ],
)
def test_levels_are_coloured_on_a_terminal_unless_nobody_wants_it(
    stream: type[io.StringIO],
    environment: dict[str, str],
    coloured: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    written = stream()

    with bare_root() as root:
        Logs("human", "info", written).take_root()
        root.error("said")

    assert ("\x1b[" in written.getvalue()) == coloured


def test_a_root_logger_that_the_app_has_set_up_is_left_alone() -> None:
    ours, theirs = io.StringIO(), io.StringIO()
    logs = Logs("human", "info", ours)

    with bare_root() as root:
        logs.begin()
        logging.basicConfig(stream=theirs, level="WARNING", format="app: %(message)s")
        logs.take_root()
        logging.getLogger("windlass").warning("said")
        level = root.level

    assert (ours.getvalue(), theirs.getvalue()) == ("", "app: said\n")
    assert level == logging.WARNING


def test_what_is_kept_with_jobs_alone_is_made_and_not_shown() -> None:
    shown, kept = io.StringIO(), io.StringIO()
    logs = Logs("human", "warning", shown)
    logs.kept_from = logging.INFO

    with bare_root() as root:
        pickle.loads(pickle.dumps(logs)).take_root()  # noqa: S301 - as it goes to child processes
        level_elsewhere = root.level
        root.handlers.clear()
        logs.take_root()
        root.addHandler(logging.StreamHandler(kept))
        for name in ("app", "windlass.jobs"):
            logging.getLogger(name).info("info of %s", name)
            logging.getLogger(name).warning("warning of %s", name)

    assert level_elsewhere == logging.INFO
    assert [line.partition("WARNING ")[2] for line in shown.getvalue().splitlines()] == [
        "warning of app",
        "warning of windlass.jobs",
    ]
    # a line for each success would cost as much as the job
    assert kept.getvalue().splitlines() == ["info of app", "warning of app", "warning of windlass.jobs"]


def test_what_is_said_while_the_app_is_loaded_is_seen() -> None:
    written = io.StringIO()

    with bare_root() as root:
        Logs("human", "info", written).begin()
        logging.getLogger("windlass").warning("said")
        handlers = root.handlers[:]

    assert written.getvalue().endswith("WARNING said\n")
    assert handlers == []


def test_a_configuration_that_turns_off_all_other_loggers_does_not_silence_us() -> None:
    logs = Logs("human", "info", io.StringIO())
    logging.getLogger("windlass").disabled = logging.getLogger("windlass.jobs").disabled = True

    with bare_root():
        logs.take_root()

    assert not logging.getLogger("windlass").disabled
    assert not logging.getLogger("windlass.jobs").disabled


@pytest.mark.parametrize("kind", ["say", "say_far_away"])
def test_what_a_handler_logs_names_its_job_and_stdout_stays_free(tmp_path: Path, kind: str) -> None:
    """Also in a process of its own."""
    [job] = enqueue(tmp_path, kind, {"text": "hello"})
    with Running(tmp_path, "--log-format", "json") as running:
        running.noted("said")
        running.says("succeeded")
        running.signal(signal.SIGTERM)
        assert running.ends() == 0
        assert running.process.stdout is not None
        assert running.process.stdout.read() == b""

    [said] = [each for each in running.records() if each["logger"] == "tasks"]
    [end] = [each for each in running.records() if each["logger"] == "windlass.jobs"]
    assert (said["message"], said["job_id"], said["kind"], said["queue"]) == ("hello", job, kind, "default")
    assert (end["job_id"], end["outcome"], end["attempt"]) == (job, "succeeded", 1)
    assert said["server"] == end["server"]
    assert said["server"].startswith("windlass#")


def test_debug_shows_more_and_warning_less(tmp_path: Path) -> None:
    with Running(tmp_path, "--log-level", "warning") as running:
        running.noted("opened")
        running.signal(signal.SIGTERM)
        assert running.ends() == 0

    assert running.log() == ""
