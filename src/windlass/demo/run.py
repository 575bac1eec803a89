"""One run of the demo, in a folder that is gone in the end."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from windlass import WindlassError
from windlass.demo import summary
from windlass.demo.checker import Plan, Report
from windlass.demo.ledger import TornLine
from windlass.demo.story import Scene, tell
from windlass.demo.view import Fact, View
from windlass.demo.worker_command import Trouble

SHORTEST: Final = 10.0
LONGEST: Final = 3_600.0
REMOVABLE: Final = ("fence",)


class Ending(NamedTuple):
    """How a run ended: the exit code, the last words, and the rows of the table, if it came so far."""

    code: int
    text: str
    facts: Sequence[Fact] = ()

    @property
    def good(self) -> bool:
        return self.code in (summary.HELD, summary.STOPPED)


def run(seconds: float, removed: str | None, view: View) -> Ending:
    """Tell the story and show the table; return how it ended."""
    began = time.monotonic()
    view.title("Windlass: a shop's jobs, while processes are killed, poisoned and paused.")
    try:
        # no settings of whoever runs it: neither those of the environment nor of a pyproject.toml here
        with TemporaryDirectory(prefix="windlass-demo-") as folder, contextlib.chdir(folder):
            scene = Scene(Path(folder), seconds, removed)
            _set_environment(scene)
            plan, report = asyncio.run(_stoppable(scene, view))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Ending(summary.STOPPED, "Stopped at once. The worker is killed, and its files are deleted.")
    except (Trouble, TornLine, WindlassError) as trouble:
        return Ending(summary.VOID, f"This run shows nothing: {trouble}.")
    finally:
        view.close()
    facts = summary.facts(report, time.monotonic() - began)
    view.table(facts)
    return Ending(*summary.conclusion(report, removed, stopped=plan.stopped), facts)


def _set_environment(scene: Scene) -> None:
    """Tell the app where its store is, here and in the processes of the worker."""
    for name in [name for name in os.environ if name.startswith("WINDLASS_")]:
        # what somebody has set for an app of their own is not meant for this one
        del os.environ[name]
    os.environ |= {
        "WINDLASS_URL": scene.url,
        "DEMO_LEDGER": str(scene.ledger),
        "DEMO_WITHOUT": scene.removed or "",
    }


async def _stoppable(scene: Scene, view: View) -> tuple[Plan, Report]:
    """Tell the story; the first Ctrl-C or SIGTERM lets it end early, the second ends it at once."""
    story = asyncio.current_task()
    assert story is not None
    stop = asyncio.Event()

    def asked() -> None:
        story.cancel() if stop.is_set() else stop.set()

    for sent in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sent, asked)
    return await tell(scene, view, stop)
