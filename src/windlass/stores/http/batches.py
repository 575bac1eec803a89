"""Batches of enqueues and settlements: those of concurrent callers go out in one request."""

from collections.abc import Awaitable, Sequence
from itertools import chain, islice
from typing import Final

from windlass.api import operations
from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import pages
from windlass.api.claim_calls import SettleAsked
from windlass.api.claims import Settled as SettledTold
from windlass.api.claims import settlement_asked
from windlass.api.job_calls import BatchesAsked, EnqueueAsked
from windlass.api.jobs import Enqueued as EnqueuedTold
from windlass.api.jobs import asked
from windlass.api.problems import error_of
from windlass.core.errors import OutcomeUnknown
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.kit.gather import Gather
from windlass.kit.weight import weight_of_jobs, weight_of_settlements
from windlass.stores.http.operation_client import OperationClient

MOST_TOGETHER: Final = 1_000
"""What goes out together may weigh, unless one caller brings more: a job or a settlement, and each of these bytes."""
BYTES: Final = 4096
WIDTH: Final = 2
"""Gathered calls under way at once: one is served while the next one is made."""


class Batches:
    """Enqueues and settlements of one store, in one process."""

    def __init__(self, client: OperationClient, *, patience: float) -> None:
        """Send by `client`; what has gathered for `patience` seconds is not sent any more."""
        self._client = client
        self._enqueues: Gather[Sequence[PreparedJob], list[Enqueued]] = Gather(
            self._enqueue_batches, most=MOST_TOGETHER, width=WIDTH, weight=_weight_of_jobs, patience=patience
        )
        self._settlements: Gather[Sequence[Settlement], list[SettleResult]] = Gather(
            self._settle_batches, most=MOST_TOGETHER, width=WIDTH, weight=_weight_of_settlements, patience=patience
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._enqueues.close()
        await self._settlements.close()

    def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> Awaitable[list[Enqueued]]:
        """Put jobs in line, all or none; what nobody has named goes out together with others."""
        if request_id is None and jobs:
            return self._enqueues.submit(jobs)
        return self._enqueue(jobs, request_id)

    async def _enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        if not jobs:
            return []
        wanted = EnqueueAsked(jobs=[asked(job) for job in jobs])
        told = await self._client.named(request_id).change(operations.ENQUEUE, wanted, doubt=jobs[0].id)
        return _enqueued(told.jobs)

    async def _enqueue_batches(self, batches: list[Sequence[PreparedJob]]) -> list[list[Enqueued] | BaseException]:
        if len(batches) == 1:
            return [await self._enqueue(batches[0], None)]
        wanted = BatchesAsked(batches=[[asked(job) for job in batch] for batch in batches])
        try:
            told = await self._client.change(operations.ENQUEUE_BATCHES, wanted, doubt=batches[0][0].id)
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [_doubt_of(batch[0].id, unknown) for batch in batches]
        return [_enqueued(each.jobs) if each.problem is None else error_of(each.problem) for each in told.batches]

    def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> Awaitable[list[SettleResult]]:
        """Write how claims ended, each as one step of its own."""
        if request_id is None and settlements:
            return self._settlements.submit(settlements)
        return self._settle(settlements, request_id)

    async def _settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        results: list[SettleResult] = []
        client = self._client.named(request_id)
        for page in pages(settlements, MOST_JOBS):
            wanted = SettleAsked(settlements=[settlement_asked(one) for one in page])
            told = await client.change(operations.SETTLE, wanted, doubt=page[0].job_id)
            results += [_settled(one) for one in told.settled]
        return results

    async def _settle_batches(self, batches: list[Sequence[Settlement]]) -> list[list[SettleResult] | BaseException]:
        try:
            done = iter(await self._settle(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            return [_doubt_of(batch[0].job_id, unknown) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]


def _enqueued(told: Sequence[EnqueuedTold]) -> list[Enqueued]:
    return [Enqueued(JobId(one.id), one.created) for one in told]


def _settled(told: SettledTold) -> SettleResult:
    return Settled(told.outcome) if told.problem is None else error_of(told.problem)


def _weight_of_jobs(jobs: Sequence[PreparedJob]) -> int:
    return weight_of_jobs(jobs, bytes_each=BYTES)


def _weight_of_settlements(settlements: Sequence[Settlement]) -> int:
    return weight_of_settlements(settlements, bytes_each=BYTES)


def _doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the call."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt
