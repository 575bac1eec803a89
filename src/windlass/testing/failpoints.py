"""Faults at named points, told by an environment variable, for test programs that are started as processes.

    WINDLASS_FAILPOINTS="sqlite.after_commit=kill;nth=3 sqlite.before_commit=sleep:0.5;prob:0.1,42"

Entries are parted by spaces. Each is `point=action`, and after a `;` when:

| action | does |
|---|---|
| `kill` | SIGKILL to the own process |
| `stop` | SIGSTOP to the own process; somebody else continues it |
| `raise` | raises `Faulted`, or with `raise:OSError` that builtin exception |
| `sleep:s` | blocks the thread for `s` seconds |

| when | |
|---|---|
| nothing | each time that the point is reached |
| `once` | the first time |
| `nth=n` | the `n`-th time |
| `prob:p,seed` | each time with chance `p`, from `seed` |

Only a test program calls `arm_from_environment`; nothing else in Windlass reads the variable.
"""

import builtins
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from windlass.core.errors import InvalidValue, WindlassError
from windlass.core.failpoint import arm

VARIABLE: Final = "WINDLASS_FAILPOINTS"


class Faulted(WindlassError):
    """A failpoint was armed to raise, and was reached."""


class Fault:
    """What happens at one point; `reached` and `fired` count, since a run without a fault proves nothing."""

    def __init__(self, point: str, action: Callable[[], None], when: Callable[[int], bool]) -> None:
        """Do `action` at `point` whenever `when` says so of how often it was reached."""
        self.point = point
        self.reached = 0
        self.fired = 0
        self._action = action
        self._when = when
        self._guard = threading.Lock()

    def __call__(self) -> None:
        """Be reached."""
        with self._guard:
            self.reached += 1
            if not self._when(self.reached):
                return
            self.fired += 1
        self._action()


def arm_from_environment(environ: Mapping[str, str] = os.environ) -> dict[str, Fault]:
    """Arm what `WINDLASS_FAILPOINTS` names, and return it by point."""
    faults = [fault(entry) for entry in environ.get(VARIABLE, "").split()]
    for each in faults:
        arm(each.point, each)
    return {each.point: each for each in faults}


def fault(entry: str) -> Fault:
    """Read one entry."""
    rule, _, when = entry.partition(";")
    point, equals, action = rule.partition("=")
    if not (point and equals and action):
        raise _unreadable(entry)
    return Fault(point, _action(action, entry), _when(when, entry))


def _action(text: str, entry: str) -> Callable[[], None]:
    name, _, argument = text.partition(":")
    match name:
        case "kill":
            return lambda: os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            return lambda: os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            return _raiser(argument, entry)
        case "sleep":
            seconds = _number(argument, entry)
            return lambda: time.sleep(seconds)
        case _:
            raise _unreadable(entry)


def _raiser(name: str, entry: str) -> Callable[[], None]:
    error: object = getattr(builtins, name, None) if name else Faulted
    if not (isinstance(error, type) and issubclass(error, BaseException)):
        raise _unreadable(entry)

    def throw() -> None:
        raise error(f"failpoint {entry}")

    return throw


def _when(text: str, entry: str) -> Callable[[int], bool]:
    if not text:
        return lambda _: True
    if text == "once":
        return lambda reached: reached == 1
    if text.startswith("nth="):
        nth = int(_number(text.removeprefix("nth="), entry))
        return lambda reached: reached == nth
    if text.startswith("prob:"):
        chance, _, seed = text.removeprefix("prob:").partition(",")
        limit, draw = _number(chance, entry), random.Random(seed)  # noqa: S311 - a run must repeat
        return lambda _: draw.random() < limit
    raise _unreadable(entry)


def _number(text: str, entry: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _unreadable(entry) from None


def _unreadable(entry: str) -> InvalidValue:
    return InvalidValue(
        f"failpoint {entry!r} cannot be read: write point=action;when, as windlass.testing.failpoints says"
    )
