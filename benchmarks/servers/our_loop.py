"""The event loop that Windlass is measured on: the one that its own programs choose, as each peer runs on its own."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from benchmarks.measuring.contestant import Outcome
from windlass.event_loop import runner_on

T = TypeVar("T")


def on_our_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it is installed."""
    with runner_on("auto") as runner:
        return runner.run(main)


def run_on_ours(main: Coroutine[object, object, Outcome | None]) -> Outcome:
    """Run a measurement there that may bring no figures."""
    return on_our_loop(main) or Outcome()
