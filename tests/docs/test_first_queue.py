import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.pages import answers, write_files

PAGE = "tutorial/first-queue.md"
LEASE = 1.0
NUMBER = re.compile(r"(?<=worker )\d+|[0-9a-f]{8}-[0-9a-f-]{27}")


class Terminal:
    """Runs the page's programs in its folder, with shorter waits than a reader needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        write_files(PAGE, folder)
        worker = (folder / "worker.py").read_text()
        for slow, fast in (("lease=5", f"lease={LEASE}"), ("wait=1", "wait=0.3"), ("time.sleep(3)", "time.sleep(0.2)")):
            assert slow in worker
            worker = worker.replace(slow, fast)
        (folder / "worker.py").write_text(worker)

    def start(self, program: str) -> "subprocess.Popen[str]":
        command = [sys.executable, program]
        return subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *programs: str) -> list[str]:
        """Run programs at the same time; return all lines, with numbers that differ each time left out."""
        running = [self.start(program) for program in programs]
        return [NUMBER.sub("N", line) for each in running for line in each.communicate(timeout=30)[0].splitlines()]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def shown(command: str) -> list[list[str]]:
    return [[NUMBER.sub("N", line) for line in answer.splitlines()] for answer in answers(PAGE, f"python {command}")]


def test_the_tutorial_answers_as_it_says(terminal: Terminal) -> None:
    looks = iter(shown("look.py"))
    first, together, failing = shown("worker.py")
    assert [terminal.run("enqueue.py")] == shown("enqueue.py")
    assert terminal.run("look.py") == next(looks)

    worker = terminal.start("worker.py")
    assert worker.stdout is not None
    begun = [NUMBER.sub("N", worker.stdout.readline().rstrip()) for _ in first]
    worker.kill()
    worker.communicate()
    killed_at = time.monotonic()

    assert begun == first
    assert terminal.run("look.py") == next(looks)
    while time.monotonic() < killed_at + LEASE:  # the lease is by the clock of the machine
        time.sleep(0.05)
    assert sorted(terminal.run("worker.py", "worker.py")) == sorted(together)
    assert terminal.run("look.py") == next(looks)
    assert [terminal.run("mistake.py")] == shown("mistake.py")
    assert terminal.run("worker.py") == failing
    assert terminal.run("look.py") == next(looks)
    assert [terminal.run("dead.py")] == shown("dead.py")
    assert terminal.run("look.py") == next(looks)
    assert next(looks, None) is None
