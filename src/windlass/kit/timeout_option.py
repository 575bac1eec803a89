"""The option `timeout` of the URLs of stores: how long one call may take."""

import re
from typing import Final

from windlass.core.errors import InvalidURL

SHORTEST, LONGEST = 0.1, 60.0
"""Seconds that a call may be given: in every store, what a repeated one is known by is kept for longer."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


def timeout_of(scheme: str, text: str) -> float:
    """Return the seconds that the option says; raises `InvalidURL` for what is no such time."""
    seconds = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        message = f"{scheme}:// takes timeout={SHORTEST} to {LONGEST:.0f}, in seconds, not {text[:40]!r}"
        raise InvalidURL(message)
    return seconds
