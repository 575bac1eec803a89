"""The event loop that our own programs run on: uvloop where it is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import cast

from windlass.config.settings import EventLoop
from windlass.core.errors import MissingExtra


def runner_on(wanted: EventLoop) -> asyncio.Runner:
    """Return what runs a program on the `wanted` loop, by `with`; raises `MissingExtra` where that one is not there.

    A library leaves the choice to the program that it lives in: this is for commands, and for servers that are run
    from a program without an event loop.
    """
    return asyncio.Runner(loop_factory=None if wanted == "asyncio" else _uvloop(required=wanted == "uvloop"))


def _uvloop(*, required: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        found = import_module("uvloop")
    except ImportError as error:
        if required:
            raise MissingExtra("event_loop=uvloop", "uvloop") from error
        return None
    return cast("Callable[[], asyncio.AbstractEventLoop]", found.new_event_loop)
