"""Processes whose own parents have ended: they come to process 1, which is what a container runs."""

import os
from collections.abc import Collection


def bury_orphans(children: Collection[int]) -> int:
    """Let every process go that has ended and is none of `children`; return how many.

    Whoever started a child asks for its end. Where the system cannot look without taking, nothing is done: there are
    no containers there either.
    """
    if not hasattr(os, "waitid"):
        return 0
    buried = 0
    while (ended := _ended()) is not None and ended not in children:
        os.waitpid(ended, os.WNOHANG)
        buried += 1
    return buried


def _ended() -> int | None:
    """Return a process that has ended and that nobody has asked for yet."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid
