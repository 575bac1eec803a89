"""Attempts for child processes, and what comes of them."""

import asyncio
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.engine.executors import home
from tests.job_samples import BARE
from windlass.codec import JSON
from windlass.core.job import Job, Progress, Token
from windlass.core.states import State
from windlass.core.verdict import Returned
from windlass.engine.executors.processes import ChildEnd, ChildRun, Processes

TOKEN = Token("a token")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(payload: bytes = b"", **changes: Any) -> Job:  # noqa: ANN401 - any field of a job
    """Return a job that is held."""
    made = BARE._replace(
        queue="default",
        payload=payload,
        codec="json",
        headers={"from": "a test"},
        state=State.RUNNING,
        attempt=1,
        max_attempts=3,
        delivery=1,
        created_at=NOW,
        run_at=NOW,
        claimed_at=NOW,
        lease_expires_at=NOW + timedelta(seconds=30),
        worker="a test",
    )
    return made._replace(**changes)


class Held:
    """An attempt that keeps what its child notes."""

    def __init__(self, job: Job, token: Token = TOKEN) -> None:
        self.job = job
        self.token = token
        self.lease = 30.0
        self.log_from = logging.INFO
        self.lines: list[tuple[str, str]] = []
        self.steps: list[Progress] = []
        self.noted = asyncio.Event()

    def note(self, level: str, text: str) -> None:
        self.lines.append((level, text))
        self.noted.set()

    def progress(self, done: float, total: float | None, note: str | None) -> None:
        self.steps.append(Progress(done, total, note))


def begin(pool: Processes, handler: home.Handled, **arguments: object) -> tuple[ChildRun, Held]:
    attempt = Held(a_job(JSON.encode(arguments)))
    return pool.start(handler.registered, attempt), attempt


async def run(pool: Processes, handler: home.Handled, **arguments: object) -> ChildEnd:
    started, _ = begin(pool, handler, **arguments)
    return await started.ended


async def value(pool: Processes, handler: home.Handled, **arguments: object) -> Any:  # noqa: ANN401 - whatever it returned
    end = await run(pool, handler, **arguments)
    assert isinstance(end.outcome, Returned), end
    return None if end.outcome.result is None else JSON.decode(end.outcome.result)


def run_program(folder: Path, text: str, argument: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of its own, with the rooms of the tests in reach."""
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, str(program), argument]
    reach = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=reach)
