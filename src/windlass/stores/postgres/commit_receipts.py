"""Receipts of callers' transactions: whether one was committed is known also when the reply to its commit was lost."""

from collections.abc import Callable
from functools import partial
from typing import Final

from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.ids import JobId
from windlass.stores.postgres.moves.receipts import seal, unless_sealed
from windlass.stores.postgres.runner import Runner

ASKED_FOR: Final = 60.0
"""Seconds until an answer is given up: receipts are kept twice as long, and one that is gone tells nothing."""


class CommitReceipts:
    """Names the receipts of one store's callers, and asks after them."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str]) -> None:
        """Ask through `runner`."""
        self._runner = runner
        self.new = new_request_id

    async def was_committed(self, request_id: str, job_id: JobId, *, in_haste: bool) -> bool:
        """Tell whether the transaction that wrote this receipt was committed; if it was not, it never will be.

        Asks until it is known, and only for as long as a call lasts when `in_haste`; then `OutcomeUnknown` is raised.
        """
        try:
            return await self._runner.run(
                lambda changes: seal(changes, request_id),
                again=partial(unless_sealed, request_id),
                timeout=None if in_haste else ASKED_FOR,
                doubt=job_id,
            )
        except StoreUnavailable as error:
            raise OutcomeUnknown(job_id) from error
