"""Enqueues of many callers: plain jobs go out together, keyed ones and large batches each by themselves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from windlass.core.errors import OutcomeUnknown, StoreMoved, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.kit.gather import Gather
from windlass.kit.weight import bytes_of_jobs, weight_of_jobs
from windlass.stores.postgres.faults import has_waited_in_vain, is_id_taken
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
"""Bytes up to which a batch goes out together with others."""
MOST_TOGETHER: Final = 1_000
"""What one statement may weigh, unless one caller brings more: a job, and each of these bytes, so 32 MiB."""
BYTES_EACH: Final = 32 * 1024
PATIENCE: Final = "100"
"""Milliseconds for which jobs that went out together wait for a transaction that has brought the id of one of them."""


class Enqueuer:
    """Puts jobs in line."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str], *, timeout: float) -> None:
        """Write through `runner`; a call goes out within `timeout` seconds or not at all, and ends within as many."""
        self._runner = runner
        self._timeout = timeout
        self._new_request_id = new_request_id
        self._plain: Gather[Sequence[PreparedJob], list[Enqueued] | None] = Gather(
            self._insert_together, most=MOST_TOGETHER, weight=_weight_of, patience=timeout
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._plain.close()

    async def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        """Put jobs in line, all or none; a request that was served before is given its first answer."""
        if not jobs:
            return []
        # a key may have to be waited for, which only those who asked for one should do
        if request_id is None and _goes_with_others(jobs):
            return await self._enqueue_plain(jobs)
        return await self._enqueue_by_itself(jobs, request_id)

    async def _enqueue_by_itself(
        self, jobs: Sequence[PreparedJob], request_id: str | None = None, *, timeout: float | None = None
    ) -> list[Enqueued]:
        """Put jobs in line in a transaction of their own."""
        named = request_id or self._new_request_id()
        done = await self._runner.run(
            lambda changes: enqueue_once(changes, jobs, named),
            again=partial(enqueued_before, named),
            timeout=timeout,
            doubt=jobs[0].id,
        )
        return done or []

    async def _enqueue_plain(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        done = await self._plain.ask(jobs)
        if done is None:
            # who brings an id that another transaction has brought waits for it, and no other caller does
            done = await self._enqueue_by_itself(jobs, timeout=max(deadline - loop.time(), 0))
        return done

    async def _insert_together(
        self, batches: list[Sequence[PreparedJob]]
    ) -> list[list[Enqueued] | BaseException | None]:
        """Insert the jobs of many callers by one statement; None for a caller who has to insert its own alone."""
        jobs = batches[0] if len(batches) == 1 else list(chain.from_iterable(batches))
        try:
            inserted = await self._insert(jobs, patience=PATIENCE)
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [doubt_of(batch[0].id, unknown) for batch in batches]
        except StoreUnavailable as error:
            if has_waited_in_vain(error) or (is_id_taken(error) and len(batches) == 1):
                return [None] * len(batches)
            if error.retryable or isinstance(error, StoreMoved) or len(batches) == 1:
                raise
            # one of them brings what cannot be kept, and only its caller is to hear of that
            return [await self._insert_alone(batch) for batch in batches]
        if len(batches) == 1:
            return [inserted]
        done = iter(inserted)
        return [list(islice(done, len(batch))) for batch in batches]

    async def _insert_alone(self, batch: Sequence[PreparedJob]) -> list[Enqueued] | BaseException | None:
        try:
            [done] = await self._insert_together([batch])
        except WindlassError as error:
            return error
        return done

    def _insert(self, jobs: Sequence[PreparedJob], *, patience: str) -> Coroutine[Any, Any, list[Enqueued]]:
        request_id = self._new_request_id()
        return self._runner.run(
            lambda changes: insert_plain(changes, jobs, request_id, patience=patience),
            whole=False,
            again=lambda: inserted_before(jobs, request_id),
            doubt=jobs[0].id,
        )


def doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the commit."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt


def _goes_with_others(jobs: Sequence[PreparedJob]) -> bool:
    if len(jobs) == 1:
        [job] = jobs
        return job.unique is None and not job.kv and bytes_of_jobs(jobs) <= SMALL
    return is_plain(jobs) and len(jobs) <= AT_ONCE and bytes_of_jobs(jobs) <= SMALL


def _weight_of(jobs: Sequence[PreparedJob]) -> int:
    return weight_of_jobs(jobs, bytes_each=BYTES_EACH)
