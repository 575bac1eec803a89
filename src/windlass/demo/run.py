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
from windlass.demo.dashboard import shown_in_browser
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


def run(seconds: float, removed: str | None, view: View, *, stay: bool = False) -> Ending:
    """Tell the story, show the table and how it ended, and return that; with `stay` wait for Ctrl-C before."""
    view.title("Windlass: a shop's jobs, while processes are killed, poisoned and paused.")
    try:
        # no settings of whoever runs it: neither those of the environment nor of a pyproject.toml here
        with TemporaryDirectory(prefix="windlass-demo-") as folder, contextlib.chdir(folder):
            scene = Scene(Path(folder), seconds, removed)
            for name in [name for name in os.environ if name.startswith("WINDLASS_")]:
                del os.environ[name]
            # the app finds its store by these, here and in the processes of the worker
            os.environ |= {
                "WINDLASS_URL": scene.url,
                "DEMO_LEDGER": str(scene.ledger),
                "DEMO_WITHOUT": scene.removed or "",
            }
            return asyncio.run(_stoppable(scene, view, stay=stay))
    except (KeyboardInterrupt, asyncio.CancelledError):
        ending = Ending(summary.STOPPED, "Stopped at once. The worker is killed, and its files are deleted.")
    except (Trouble, TornLine, WindlassError) as trouble:
        ending = Ending(summary.VOID, f"This run shows nothing: {trouble}.")
    _conclude(ending, view)
    return ending


def _conclude(ending: Ending, view: View) -> None:
    view.close()
    if ending.facts:
        view.table(ending.facts)
    view.conclude(ending.text, good=ending.code in (summary.HELD, summary.STOPPED))


async def _stoppable(scene: Scene, view: View, *, stay: bool) -> Ending:
    """Tell the story; the first Ctrl-C or SIGTERM lets it end early, the second ends it at once."""
    began = time.monotonic()
    story = asyncio.current_task()
    assert story is not None
    stop = asyncio.Event()

    def asked() -> None:
        story.cancel() if stop.is_set() else stop.set()

    for sent in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sent, asked)
    async with shown_in_browser(scene.url, view) as address:
        plan, report = await tell(scene, view, stop, address=address)
        facts = summary.facts(report, time.monotonic() - began)
        ending = Ending(*summary.conclusion(report, scene.removed, stopped=plan.stopped), facts)
        _conclude(ending, view)
        if stay and address is not None and not stop.is_set():
            view.say(f"The dashboard stays at {address} until Ctrl-C.")
            await stop.wait()
    return ending
