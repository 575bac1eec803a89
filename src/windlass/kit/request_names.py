"""Names for calls whose repetition must be known."""

from itertools import count
from typing import Final

from windlass.core.clock import Rng

_RANDOM_BYTES: Final = 12
"""Nobody else begins theirs so."""


def of_kind(kind: str, request_id: str | None) -> str | None:
    """Return a request by a name that no call of another kind has: the answer to that would be no answer to this."""
    return None if request_id is None else f"{kind}:{request_id}"


class RequestNames:
    """Names the calls of one process one after the other; never shared with a forked one.

    A store keeps the receipt of a call by its name. Names that rise are added at one place of an index, where random
    ones would touch a page each.
    """

    def __init__(self, rng: Rng) -> None:
        """Draw what all of them begin with."""
        self._beginning = rng.token_bytes(_RANDOM_BYTES).hex()
        self._numbers = count(1)

    def new(self) -> str:
        """Name a call."""
        return f"{self._beginning}{next(self._numbers):010x}"
