"""Named points where a test can make the program fail; nothing happens there unless one is armed.

The code calls `reach("sqlite.after_commit")`. Only tests arm a point (`windlass.testing.failpoints`), with any
callable: one that kills the process, raises, or sleeps.
"""

from collections.abc import Callable

_armed: dict[str, Callable[[], None]] = {}


def reach(point: str) -> None:
    """Do what was armed at `point`, which is nothing outside of tests."""
    if _armed and (action := _armed.get(point)) is not None:
        action()


def arm(point: str, action: Callable[[], None]) -> None:
    """Call `action` each time that `point` is reached."""
    _armed[point] = action


def disarm(point: str | None = None) -> None:
    """Take back what was armed at `point`, or everything."""
    if point is None:
        _armed.clear()
    else:
        _armed.pop(point, None)


_removed: set[str] = set()


def removed(safeguard: str) -> bool:
    """Whether a test has taken a safeguard out, to show that it is what holds; never outside of tests."""
    return bool(_removed) and safeguard in _removed


def remove(safeguard: str) -> None:
    """Take a safeguard out: a named test must then fail."""
    _removed.add(safeguard)


def restore() -> None:
    """Put every safeguard back."""
    _removed.clear()
