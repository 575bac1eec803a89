"""The command line: `make demo`, `make demo ARGS="--seconds 20"`, `make demo BREAK=fence`.

The exit code is 0 when every promise held, 1 when one did not, 2 when the run shows nothing, 130 when it was stopped.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from examples.demo import summary
from examples.demo.checker import Plan, Report
from examples.demo.ledger import TornLine
from examples.demo.live_view import LiveView
from examples.demo.story import Scene, tell
from examples.demo.view import PlainView, View, person_is_watching
from examples.demo.worker_command import Trouble
from windlass import WindlassError

SHORTEST: Final = 10
REMOVABLE: Final = ("fence",)


def main() -> int:
    options = _options()
    view: View = LiveView() if person_is_watching() else PlainView()
    code, text = _run(options.seconds, options.removed, view)
    view.conclude(text, good=code in (summary.HELD, summary.STOPPED))
    return code


def _run(seconds: float, removed: str | None, view: View) -> tuple[int, str]:
    """Tell the story and show the table; return the exit code and the last words."""
    began = time.monotonic()
    view.title("Windlass: a shop's jobs, while processes are killed, poisoned and paused.")
    try:
        with TemporaryDirectory(prefix="windlass-demo-") as folder:
            scene = Scene(Path(folder), seconds, removed)
            _set_environment(scene)
            plan, report = asyncio.run(_stoppable(scene, view))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return summary.STOPPED, "Stopped at once. The worker is killed, and its files are deleted."
    except (Trouble, TornLine, WindlassError) as trouble:
        return summary.VOID, f"This run shows nothing: {trouble}."
    finally:
        view.close()
    view.table(summary.facts(report, time.monotonic() - began))
    return summary.conclusion(report, removed, stopped=plan.stopped)


def _set_environment(scene: Scene) -> None:
    """Tell the app where its store is, here and in the processes of the worker."""
    for name in [name for name in os.environ if name.startswith("WINDLASS_")]:
        # what somebody has set for an app of their own is not meant for this one
        del os.environ[name]
    os.environ |= {"WINDLASS_URL": scene.url, "DEMO_LEDGER": str(scene.ledger)}


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description="Watch jobs survive killed processes.")
    parser.add_argument("--seconds", type=float, default=60, help="about how long, 60 by default")
    options = parser.parse_args()
    if not SHORTEST <= options.seconds <= 3600:
        parser.error(f"--seconds {options.seconds:g}: the story needs from {SHORTEST} seconds to an hour")
    options.removed = os.environ.get("BREAK") or None
    if options.removed not in (None, *REMOVABLE):
        parser.error(f"BREAK={options.removed} is not known: this story can do without {' or '.join(REMOVABLE)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
