"""Enqueues jobs: the small enqueues of many callers go out together, in one script."""

from collections.abc import Awaitable, Sequence
from itertools import chain, islice
from typing import Final

import msgspec

from windlass.core.errors import IdConflict, OutcomeUnknown, StoreCorrupt, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.kit.gather import Gather
from windlass.kit.request_names import of_kind
from windlass.kit.weight import bytes_of_jobs
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.requests import BARE, jobs_of
from windlass.stores.redis.weight import MOST_TOGETHER, check_size, weight_of_jobs

SMALL: Final = 1024 * 1024
"""Bytes up to which an enqueue goes out together with others."""

_decode = msgspec.msgpack.Decoder().decode


class Enqueuer:
    """Enqueues jobs under the keys of one prefix."""

    def __init__(self, caller: Caller) -> None:
        """Run through `caller`."""
        self._caller = caller
        self._together: Gather[Sequence[PreparedJob], list[Enqueued]] = Gather(
            self._enqueue_plain, most=MOST_TOGETHER, weight=weight_of_jobs, patience=caller.patience
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._together.close()

    def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> Awaitable[list[Enqueued]]:
        """Enqueue jobs, all or none."""
        if jobs and request_id is None and _is_plain(jobs):
            return self._together.ask(jobs)
        # sooner than by the request, of which there would be copies by then
        check_size(bytes_of_jobs(jobs))
        return self._enqueue(jobs, request_id)

    async def _enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        if not jobs:
            return []
        written = jobs_of(jobs)
        reply = await self._caller.once(
            _name_of(jobs, written), {"jobs": written}, of_kind("enqueue", request_id), doubt=jobs[0].id
        )
        done, *answer = _decode(reply)
        if not done:
            raise await self._caller.stored.refusal(*answer)
        if not answer:
            return [Enqueued(job.id, created=True) for job in jobs]
        return [Enqueued(JobId(job_id), created) for job_id, created in answer[0]]

    async def _enqueue_plain(self, batches: list[Sequence[PreparedJob]]) -> list[list[Enqueued] | BaseException]:
        try:
            if len(batches) == 1:
                return [await self._enqueue(batches[0], None)]
            done = iter(await self._enqueue(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [doubt_of(batch[0].id, unknown) for batch in batches]
        except (IdConflict, StoreCorrupt) as conflict:
            # only whose job it is hears of it
            return [conflict] if len(batches) == 1 else [await self._enqueue_alone(batch) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]

    async def _enqueue_alone(self, batch: Sequence[PreparedJob]) -> list[Enqueued] | BaseException:
        try:
            return await self._enqueue(batch, None)
        except WindlassError as error:
            return error


def doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the script."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt


def _is_plain(jobs: Sequence[PreparedJob]) -> bool:
    """Whether nothing but an id can be in its way, so that it can share a script with others."""
    for job in jobs:
        if job.unique is not None:
            return False
    return bytes_of_jobs(jobs) <= SMALL


def _name_of(jobs: Sequence[PreparedJob], written: Sequence[Sequence[object]]) -> str:
    """Return the shortest script that enqueues these jobs."""
    if len(written) == 1 and len(written[0]) == BARE:
        return "enqueue_one"
    return "enqueue_keyed" if any(job.unique is not None or job.kv for job in jobs) else "enqueue"
