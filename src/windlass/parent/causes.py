"""How a process ended, in words."""

import signal


def how_it_ended(code: int) -> str:
    """Return what a return code says, as `subprocess` gives it: below zero it is the number of a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
