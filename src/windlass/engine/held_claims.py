"""Held claims: every claim of one server that is not settled yet, or whose code still runs."""

from collections.abc import Iterable

from windlass.core.job import Token
from windlass.engine.attempt import Attempt


class HeldClaims:
    """The one owner of the claims that a server holds.

    The claim loop adds a claim at once, and it stays until it is settled and its code has ended. Renewals, the watch of
    stop requests, the settlement writer and the stop read the claims here; they may do so from any thread.
    """

    __slots__ = ("_by_token",)

    def __init__(self) -> None:
        """Hold no claim yet."""
        self._by_token: dict[Token, Attempt] = {}

    def __len__(self) -> int:
        """Return the number of held claims."""
        return len(self._by_token)

    def __contains__(self, attempt: Attempt) -> bool:
        """Return whether the claim of an attempt is held."""
        return attempt.token in self._by_token

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Hold the claims of these attempts."""
        by_token = self._by_token
        for attempt in attempts:
            by_token[attempt.token] = attempt

    def remove(self, attempts: Iterable[Attempt]) -> None:
        """Hold the claims of these attempts no longer; a claim that is not held is ignored."""
        by_token = self._by_token
        for attempt in attempts:
            by_token.pop(attempt.token, None)

    def clear(self) -> None:
        """Hold no claim any more, as a process that is gone."""
        self._by_token.clear()

    def attempts(self) -> list[Attempt]:
        """Return a copy: the attempts of all held claims, in the order of their claims; from any thread."""
        return list(self._by_token.values())
