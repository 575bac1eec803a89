"""Where a function runs, told from what it is."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from windlass.core.errors import InvalidValue
from windlass.handlers.registered import RunsIn


def runs_in(function: Callable[..., Any], *, process: bool) -> RunsIn:
    """Return where `function` runs as a handler; raises `InvalidValue` for one that cannot run there, or at all."""
    if inspect.isclass(function):
        message = f"{function.__name__} is a class, and a handler is a function: write one that makes what it needs"
        raise InvalidValue(message)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        message = f"{function.__name__}() yields, and a handler returns: take the yield out of it"
        raise InvalidValue(message)
    if process:
        _check_importable(function)
        return RunsIn.PROCESS
    return RunsIn.LOOP if is_async(function) else RunsIn.THREAD


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call of `function` gives a coroutine."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _check_importable(function: Callable[..., Any]) -> None:
    name: str = getattr(function, "__qualname__", "<none>")
    if "<" in name:
        message = (
            f"{name} cannot run in a child process, which finds its function by importing it: define it with def, at "
            "the top of a module"
        )
        raise InvalidValue(message)
