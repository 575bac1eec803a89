"""Runs the scripts of one prefix, those that may be repeated and those that must not be done twice."""

import math
from collections.abc import Awaitable, Callable
from typing import Final

from windlass.stores.redis.requests import Ask
from windlass.stores.redis.rounds import Runs

RECEIPT_KEPT: Final = 600
"""Seconds for which the answer to a call is kept that its caller has named, and may repeat whenever it likes."""
RECEIPT_SPARE: Final = 60
"""Seconds beyond its deadline for which that of any other call is kept: a repetition may be long on its way."""


class Caller:
    """What changes the keys that begin with one prefix goes through here.

    Many calls are made one after the other: nothing here is a coroutine that would only wait for another.
    """

    def __init__(
        self, runner: Runs, prefix: str, new_request_id: Callable[[], str], *, queue_number: int | None = None
    ) -> None:
        """Run through `runner`; where queues are spread, each has a number."""
        self._runner = runner
        self._prefix = prefix
        self._queue_number = queue_number
        self.patience = runner.patience
        """Seconds after which no call is repeated any more."""
        self._kept = math.ceil(runner.patience) + RECEIPT_SPARE
        self.new_request_id = new_request_id

    def look(self, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a script that only reads."""
        return self._runner.look(self._prefix, name, ask)

    def run(self, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a move that does no harm when it is repeated."""
        return self._runner.run(self._prefix, name, ask)

    def once(self, name: str, ask: Ask, request_id: str | None = None, *, doubt: str | None = None) -> Awaitable[bytes]:
        """Run a move that must not be done twice; one that a caller has named may have been done before."""
        ask |= {"request": request_id or self.new_request_id(), "kept": self._kept}
        if self._queue_number is not None:
            ask["queue_number"] = self._queue_number
        if request_id is not None:
            ask |= {"again": True, "kept": RECEIPT_KEPT}
        return self._runner.run(self._prefix, name, ask, doubt=doubt)
