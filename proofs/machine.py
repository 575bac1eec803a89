"""Each store against the model, far more often than the tests do."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from proofs.report import Report

PROMISE = "each store does what the model does, stale tokens and repeated calls included"
ROOT = Path(__file__).resolve().parent.parent
STORES = ("memory", "sqlite")
RUN = re.compile(r"(\d+) passing")


@dataclass(frozen=True)
class Plan:
    examples: int = 5_000
    seconds: float = 7_200


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("machine", PROMISE)
    started = [(store, _start(folder, store, plan.examples)) for store in STORES]
    for store, test in started:
        _check(report, store, test, plan)
    return report


def _start(folder: Path, store: str, examples: int) -> "subprocess.Popen[str]":
    """Run the test of one store in a process of its own, on seeds of its own, beside the others."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/properties/test_machine.py"]
    return subprocess.Popen(
        [*command, "-k", store, "--hypothesis-show-statistics", "-m", ""],
        cwd=ROOT,
        env={**os.environ, "WINDLASS_EXAMPLES": str(examples), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _check(report: Report, store: str, test: "subprocess.Popen[str]", plan: Plan) -> None:
    try:
        said, _ = test.communicate(timeout=plan.seconds)
    except subprocess.TimeoutExpired:
        said = f"not ended within {plan.seconds:.0f} s"
    finally:
        test.kill()
        test.wait()
    run = sum(map(int, RUN.findall(said)))
    report.figure(f"examples on {store}", run)
    report.never(f"failures on {store}", [] if test.returncode == 0 else [said[-2000:]])
    report.needs(f"{plan.examples:,} examples on {store}", given=run >= plan.examples)
