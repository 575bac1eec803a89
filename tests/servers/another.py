"""Another process of the tests, in a run of its own or in this one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
RUN: Final = "WINDLASS_TEST_RUN"


def other_process(program: str, *, run: str | None = None, **environment: str) -> "subprocess.Popen[str]":
    """Run a program of Python, in the run that is named, with more in its environment."""
    inherited = {name: value for name, value in os.environ.items() if name != RUN}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**inherited, **({} if run is None else {RUN: run}), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def told_by(process: "subprocess.Popen[str]") -> list[str]:
    """Return the words of the next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().split()
