"""A page that is followed from top to bottom by somebody with two terminals, one of which has a worker in it."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Self

from proofs.children import eventually

BLOCK: Final = re.compile(r"^```(py|python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME: Final = re.compile(r"# (\S+\.py)(, below)?\n")
CHILD: Final = re.compile(r"\bchild (\d+)")
CTRL_C: Final = "^C"
LEFT_OUT: Final = "..."
SECONDS: Final = 30.0

DIFFERS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3}Z| [+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"(?<=windlass )\d+\.\d+\.\d+"), "VERSION"),
    (CHILD, "child PID"),
    (re.compile(r"(?<=again in )[\d:.]*\d( s)?|(?<=after )\d+\.\d s"), "SPAN"),
    (
        re.compile(r"\bnow\b|(in )?\d+ (ms|s|min|h|d)( \d+ (s|min|h))?( ago)?$|(in )?\d+ \w+( \d+ \w+)?( ago)?(?=\))"),
        "SPAN",
    ),
    (re.compile(r"\d+ jobs? running"), "JOBS running"),
    (re.compile(r"  +"), " "),
)
"""What is another each time, and how wide it makes a column."""


class Step(NamedTuple):
    """A block of a page: a file (py, python), commands with their answers (console), or what the worker says (text)."""

    what: str
    text: str


def steps(page: str) -> Iterator[Step]:
    """Return the blocks of the text of a page, in order."""
    return (Step(*found) for found in BLOCK.findall(page))


def alike(line: str) -> str:
    """Return a line without what is another each time."""
    for pattern, word in DIFFERS:
        line = pattern.sub(word, line)
    return line.rstrip()


class Walk:
    """Does what a page says, in an empty folder; when it is left, nothing that it started is."""

    def __init__(self, folder: Path, *, before_kill: Callable[[], object] = bool) -> None:
        """Work in `folder`; nobody kills as fast as a test does, so wait for `before_kill` first."""
        self._folder = folder
        self._before_kill = before_kill
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._worker: subprocess.Popen[bytes] | None = None
        self._heard: set[int] = set()
        """How many lines of the worker's log have been compared."""
        self._pids: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None and self._worker.poll() is None:
            os.killpg(self._worker.pid, signal.SIGKILL)
            self._worker.wait(SECONDS)

    def follow(self, step: Step) -> None:
        """Do one step; it must come out as the page says."""
        match step.what:
            case "py" | "python":
                self._write(step.text)
            case "console":
                self._type(step.text)
            case _:
                self._listen(step.text.splitlines())

    def _write(self, text: str) -> None:
        named = NAME.match(text)
        assert named, f"a file needs its name in the first line: {text}"
        file = self._folder / named[1]
        before = file.read_text() + "\n\n" if named[2] else ""
        file.write_text(before + text)

    def _type(self, text: str) -> None:
        parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
        for command, answer in zip(parts[::2], parts[1::2], strict=True):
            words = shlex.split(command)
            if words[0] == "export":
                name, _, value = words[1].partition("=")
                self._environment[name] = value
            elif words[:2] == ["windlass", "worker"]:
                self._start(words)
                self._listen(answer.splitlines())
            else:
                self._answer(words, answer.splitlines())

    def _start(self, words: list[str]) -> None:
        with (self._folder / "worker.log").open("wb") as log:
            self._worker = subprocess.Popen(
                words, cwd=self._folder, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def _answer(self, words: list[str], shown: list[str]) -> None:
        if words[0] == "kill":
            self._before_kill()
            words = [self._pids.get(word, word) for word in words]
        done = subprocess.run(
            words,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        said = [alike(line) for line in done.stdout.splitlines()]
        wanted = [alike(line) for line in shown]
        assert _fits(said, wanted), (
            f"{shlex.join(words)} answers {done.stdout}\nbut the page has\n{chr(10).join(shown)}"
        )

    def _listen(self, shown: list[str]) -> None:
        """Wait until the worker has said these lines; two processes that write at once have no order."""
        self._heard = {*range(max(self._heard, default=-1) + 1)}
        for line in shown:
            if line == CTRL_C:
                assert self._worker is not None
                # as a terminal does: to all that run in it
                os.killpg(self._worker.pid, signal.SIGINT)
            elif line != LEFT_OUT:
                assert eventually(partial(self._hears, line), SECONDS), f"not heard: {line}\n{self._log()}"
        if CTRL_C in shown:
            assert self._worker is not None
            assert self._worker.wait(SECONDS) == 0

    def _hears(self, shown: str) -> bool:
        for number, line in enumerate(self._log().splitlines()):
            if number not in self._heard and alike(line) == alike(shown):
                self._heard.add(number)
                self._pids |= _numbered(shown, line)
                return True
        return False

    def _log(self) -> str:
        return (self._folder / "worker.log").read_text()


def _fits(said: list[str], wanted: list[str]) -> bool:
    """Whether this was said; where the page leaves something out, anything may stand."""
    if LEFT_OUT not in wanted:
        return said == wanted
    rest = iter(said)
    return said[-1:] == wanted[-1:] and all(line in rest for line in wanted if line != LEFT_OUT)


def _numbered(shown: str, said: str) -> Mapping[str, str]:
    """The process that the page calls by a number of its own."""
    on_page, real = CHILD.search(shown), CHILD.search(said)
    return {on_page[1]: real[1]} if on_page and real else {}
