"""The command line: `make demo`, `make demo ARGS="--jobs 200"`, `make demo BREAK=fence`.

The exit code is 0 when every promise held, 1 when one did not, 2 when the run shows nothing.
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
from examples.demo.checker import Report
from examples.demo.crew import Trouble
from examples.demo.ledger import TornLine
from examples.demo.live_view import LiveView
from examples.demo.story import Plan, tell
from examples.demo.view import PlainView, View, person_is_watching
from windlass import WindlassError

FEWEST: Final = 40
REMOVABLE: Final = ("fence",)
STOPPED: Final = 130


def main() -> int:
    options = _options()
    view: View = LiveView() if person_is_watching() else PlainView()
    code, text = _run(options.jobs, options.removed, view)
    view.conclude(text, good=code == summary.HELD)
    return code


def _run(jobs: int, removed: str | None, view: View) -> tuple[int, str]:
    """Tell the story and show the table; return the exit code and the last words."""
    began = time.monotonic()
    view.title(f"Windlass: {jobs:,} jobs, two workers, a kill and a pause.")
    try:
        with TemporaryDirectory(prefix="windlass-demo-") as folder:
            report = asyncio.run(_stoppable(Plan(Path(folder), jobs, removed), view))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED, "Stopped. The workers have ended, and their files are deleted."
    except (Trouble, TornLine, WindlassError) as trouble:
        return summary.VOID, f"This run shows nothing: {trouble}."
    finally:
        view.close()
    view.table(summary.facts(report, time.monotonic() - began))
    return summary.conclusion(report, removed)


async def _stoppable(plan: Plan, view: View) -> Report:
    """Tell the story; SIGTERM ends it like Ctrl-C."""
    story = asyncio.current_task()
    assert story is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, story.cancel)
    return await tell(plan, view)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description="Watch jobs survive a killed worker.")
    parser.add_argument("--jobs", type=int, default=1_000, help="how many jobs, 1000 by default")
    options = parser.parse_args()
    if options.jobs < FEWEST:
        parser.error(f"--jobs {options.jobs}: the story needs at least {FEWEST}")
    options.removed = os.environ.get("BREAK") or None
    if options.removed not in (None, *REMOVABLE):
        parser.error(f"BREAK={options.removed} is not known: this story can do without {' or '.join(REMOVABLE)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
