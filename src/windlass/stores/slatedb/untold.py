"""Settlements that were done, and whose callers may not know it."""

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from windlass.core.ids import JobId
from windlass.core.job import Token
from windlass.core.requests import Settled, Settlement, SettleResult

if TYPE_CHECKING:
    from windlass.stores.slatedb.table import Table

MOST_KEPT: Final = 10_000


class Untold:
    """The last of them, by job and token; may be told from any thread.

    A settlement that is repeated is known by the token in the record of its job: unless the record has gone with the
    job, or the job was claimed again meanwhile. It is known here then, so that it is not taken for a claim that was
    lost. Callers of another process name their request, and have a receipt.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[tuple[JobId, Token], None] = {}
        self._guard = threading.Lock()

    def add(self, settlements: Sequence[Settlement], results: Sequence[SettleResult]) -> None:
        """Keep those that were done, in place of the oldest."""
        # whoever gives other settlements the name of an earlier request is answered as that was
        done = [
            (settlement.job_id, settlement.token)
            for settlement, result in zip(settlements, results, strict=False)
            if result is Settled.DONE
        ]
        with self._guard:
            for each in done:
                self._kept[each] = None
            for each in list(self._kept)[: max(0, len(self._kept) - MOST_KEPT)]:
                del self._kept[each]

    def told(self, settlements: Iterable[Settlement], results: Iterable[SettleResult]) -> list[SettleResult]:
        """Return the results, with those of which it is known here that they are repeated."""
        return [
            Settled.REPEATED if result is Settled.LOST and (each.job_id, each.token) in self._kept else result
            for each, result in zip(settlements, results, strict=True)
        ]

    async def compare(self, table: "Table") -> None:
        """Forget those that were lost with a database that broke: their jobs are still held by their tokens.

        The table is that of the database opened anew, in which nothing was done yet.
        """
        with self._guard:
            kept = list(self._kept)
        await table.find((job_id for job_id, _ in kept), parts=())
        lost = [each for each in kept if not isinstance(table.holder_of(*each), Settled)]
        table.rest()
        with self._guard:
            for each in lost:
                self._kept.pop(each, None)
