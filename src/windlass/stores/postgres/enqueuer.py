"""Enqueues of many callers: plain jobs go out together, keyed ones and large batches each by themselves."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final

from windlass.core.errors import OutcomeUnknown, StoreMoved, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.kit.gather import Gather
from windlass.stores.postgres.moves.enqueue import (
    AT_ONCE,
    enqueue_once,
    enqueued_before,
    insert_plain,
    inserted_before,
    is_plain,
)
from windlass.stores.postgres.runner import Runner

SMALL: Final = 1024 * 1024
"""Bytes of payload up to which a batch goes out together with others."""


class Enqueuer:
    """Puts jobs in line."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str]) -> None:
        """Write through `runner`."""
        self._runner = runner
        self._new_request_id = new_request_id
        self._plain: Gather[Sequence[PreparedJob], list[Enqueued]] = Gather(self._insert)

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._plain.close()

    async def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        """Put jobs in line, all or none; a request that was served before is given its first answer."""
        if not jobs:
            return []
        # a key may have to be waited for, which only those who asked for one should do
        if request_id is None and _goes_with_others(jobs):
            return await self._plain.submit(jobs)
        named = request_id or self._new_request_id()
        done = await self._runner.run(
            lambda changes: enqueue_once(changes, jobs, named),
            again=partial(enqueued_before, named),
            doubt=jobs[0].id,
        )
        return done or []

    async def _insert(self, batches: list[Sequence[PreparedJob]]) -> list[list[Enqueued] | BaseException]:
        jobs = batches[0] if len(batches) == 1 else list(chain.from_iterable(batches))
        request_id = self._new_request_id()
        try:
            inserted = await self._runner.run(
                lambda changes: insert_plain(changes, jobs, request_id),
                whole=False,
                again=lambda: inserted_before(jobs, request_id),
                doubt=jobs[0].id,
            )
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [doubt_of(batch[0].id, unknown) for batch in batches]
        except StoreUnavailable as error:
            if error.retryable or isinstance(error, StoreMoved) or len(batches) == 1:
                raise
            # one of them brings what cannot be kept, and only its caller is to hear of that
            return [await self._insert_alone(batch) for batch in batches]
        if len(batches) == 1:
            return [inserted]
        done = iter(inserted)
        return [list(islice(done, len(batch))) for batch in batches]

    async def _insert_alone(self, batch: Sequence[PreparedJob]) -> list[Enqueued] | BaseException:
        try:
            [done] = await self._insert([batch])
        except WindlassError as error:
            return error
        return done


def doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the commit."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt


def _goes_with_others(jobs: Sequence[PreparedJob]) -> bool:
    if len(jobs) == 1:
        [job] = jobs
        return job.unique is None and not job.kv and len(job.payload) <= SMALL
    return is_plain(jobs) and len(jobs) <= AT_ONCE and sum(len(job.payload) for job in jobs) <= SMALL
