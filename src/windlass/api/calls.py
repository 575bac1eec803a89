"""What calls of several subjects share."""

from windlass.api.shape import Told

MOST_JOBS = 10_000
"""How many jobs one call may name; more of them are more calls."""


class Nothing(Told, kw_only=True):
    """It is done, and there is nothing to tell."""


class NamesTold(Told, kw_only=True):
    """Names, in order."""

    names: list[str]


class CountTold(Told, kw_only=True):
    """How many."""

    count: int
