"""A move of a process that stops right before its commit: its locks and its turn are held until somebody ends it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from proofs.children import eventually, state_of
from tests.stores.postgres.moves.moving import Mover
from windlass.core.commands import RescueClaims
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.stores.postgres.moves.fold import fold
from windlass.stores.postgres.moves.prune import prune
from windlass.stores.postgres.moves.rescue import rescue
from windlass.stores.postgres.work import Changes, Work
from windlass.testing.failpoints import VARIABLE, arm_from_environment


def _fold(_: Changes) -> Work[int]:
    return (yield from fold()).changes


def _prune(changes: Changes) -> Work[int]:
    return (yield from prune(changes, Retention(Keep(None, None, None), most=0), 100)).gone


def _rescue(changes: Changes) -> Work[int]:
    return len((yield from rescue(changes, RescueClaims(RescueRequest(), KEEP_ALL))))


UPKEEP: Final[Mapping[str, Callable[[Changes], Work[int]]]] = {"fold": _fold, "prune": _prune, "rescue": _rescue}
"""What any process may do for all of them; each returns of how many it took care."""


@contextmanager
def stopped_inside(url: str, name: str) -> Generator[int]:
    """Give the number of a process that has done this to the store, and stands still before it commits."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.stores.postgres.moves.stopped_inside", url, name]
    environ = {**os.environ, VARIABLE: "postgres.before_commit=stop"}
    with subprocess.Popen(command, env=environ) as process:
        try:
            assert eventually(lambda: state_of(process.pid) in "TZX")
            assert process.poll() is None
            yield process.pid
        finally:
            process.send_signal(signal.SIGKILL)


async def _main(url: str, name: str) -> None:
    arm_from_environment()
    await Mover(url).do(UPKEEP[name])


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
