"""The event loop that our own programs run on: uvloop where it is installed, else asyncio's own."""

import asyncio
import gc
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from windlass.config.settings import EventLoop
from windlass.core.errors import MissingExtra

SWITCH: Final = 0.0005
"""Seconds after which a thread lets another one run, in a process that serves."""


def runner_on(wanted: EventLoop) -> asyncio.Runner:
    """Return what runs a program on the `wanted` loop, by `with`; raises `MissingExtra` where that one is not there.

    A library leaves the choice to the program that it lives in: this is for commands, and for servers that are run
    from a program without an event loop.
    """
    return asyncio.Runner(loop_factory=None if wanted == "asyncio" else _uvloop(required=wanted == "uvloop"))


def favour_loop() -> None:
    """Let the event loop of a process that serves have its turn soon, whichever thread runs.

    Python lets a thread run for 5 ms before another one may; to answer a request takes the loop several turns. It is
    said for the process, so only by commands.
    """
    sys.setswitchinterval(SWITCH)
    # what was imported stays to the end: to look through it again and again for garbage stops every thread
    gc.collect()
    gc.freeze()


def _uvloop(*, required: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        found = import_module("uvloop")
    except ImportError as error:
        if required:
            raise MissingExtra("event_loop=uvloop", "uvloop") from error
        return None
    return cast("Callable[[], asyncio.AbstractEventLoop]", found.new_event_loop)
