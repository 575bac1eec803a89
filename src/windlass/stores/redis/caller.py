"""Runs the scripts of one prefix, those that may be repeated and those that must not be done twice."""

import math
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Final

from windlass.core.store_calls import Command, RepeatSafety
from windlass.stores.redis.requests import Ask
from windlass.stores.redis.rounds import Runs
from windlass.stores.redis.stored_jobs import StoredJobs

RECEIPT_KEPT: Final = 600
"""Seconds for which the answer to a call is kept that its caller has named, and may repeat whenever it likes."""
RECEIPT_SPARE: Final = 60
"""Seconds beyond its deadline for which that of any other call is kept: a repetition may be long on its way."""


class Caller:
    """What the functions of commands and queries work on: the keys that begin with one prefix.

    Many calls are made one after the other: nothing here is a coroutine that would only wait for another.
    """

    def __init__(
        self,
        runner: Runs,
        prefix: str,
        new_request_id: Callable[[], str],
        *,
        queue_number: int | None = None,
        tokens_begin: str = "",
    ) -> None:
        """Run through `runner`; where queues are spread, each has a number, and tokens begin with the queue's name."""
        self._runner = runner
        self.prefix = prefix
        self._queue_number = queue_number
        self.patience = runner.patience
        """Seconds after which no call is repeated any more."""
        self._kept = math.ceil(runner.patience) + RECEIPT_SPARE
        self.new_request_id = new_request_id
        self.tokens_begin = tokens_begin
        self._request_id: str | None = None
        self.stored = StoredJobs(self.look)
        self.packed_up_to: dict[str, int] = {}
        """By queue, the number up to which no job waited when it was packed last: so none is looked at twice."""

    def look(self, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a script that only reads."""
        return self._runner.look(self.prefix, name, ask)

    def execute(self, command: Command[Any], name: str, ask: Ask) -> Awaitable[bytes]:
        """Run the script of a command; unless a repeat changes the same again, it is answered as the first was."""
        if command.repeat is RepeatSafety.SAME:
            return self.run(name, ask)
        return self.once(name, ask, self._request_id)

    def named(self, request_id: str | None) -> "Caller":
        """Return a caller for one command that its caller has named."""
        named = copy(self)
        named._request_id = request_id  # noqa: SLF001 - of its own class
        return named

    def run(self, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a script that does no harm when it is repeated."""
        return self._runner.run(self.prefix, name, ask)

    def once(self, name: str, ask: Ask, request_id: str | None = None, *, doubt: str | None = None) -> Awaitable[bytes]:
        """Run a script that must not be done twice; one that a caller has named may have been done before."""
        ask |= {"request": request_id or self.new_request_id(), "kept": self._kept}
        if self._queue_number is not None:
            ask["queue_number"] = self._queue_number
        if request_id is not None:
            ask |= {"again": True, "kept": RECEIPT_KEPT}
        return self._runner.run(self.prefix, name, ask, doubt=doubt)
