"""A change of all jobs that match a filter: in chunks, each a step of its own, and written down whatever ends it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from windlass.api.job_calls import ChangeTold
from windlass.client.operations import CHUNK, Operation, chunks
from windlass.client.spoken import counted
from windlass.core.filters import JobFilter
from windlass.core.requests import Changed
from windlass.http.audit import write_down
from windlass.http.call import Call
from windlass.http.refusal import Refusal
from windlass.http.reply import RETRY_AFTER, UNAVAILABLE


async def change_matching(
    call: Call[Any], operation: Operation, chosen: JobFilter, words: Mapping[str, str]
) -> ChangeTold:
    """Change every job that matches and can be changed; `words` are the filter as the audit has it.

    What ends in the middle, by a stop or by an error, leaves the rest as it was, and the audit tells how many were
    changed. A change of more than one chunk is in the audit before the second: it is known also of a process that is
    killed, or whose store has gone.
    """
    bulk = _Bulk(call, operation, words)
    try:
        await bulk.run(chosen)
    finally:
        await bulk.write_down()
    return ChangeTold(count=bulk.answers[Changed.DONE], left=bulk.answers[Changed.KEY_HELD] or None)


class _Bulk:
    def __init__(self, call: Call[Any], operation: Operation, words: Mapping[str, str]) -> None:
        self.answers: Counter[Changed] = Counter()
        self._call = call
        self._operation = operation
        self._words = words
        self._whole = False

    async def run(self, chosen: JobFilter) -> None:
        async for chunk in chunks(self._call.store, self._operation, chosen):
            self.answers += chunk
            if self._call.shared.stopping and chunk.total() >= CHUNK:
                raise _stopped(self.answers[Changed.DONE])
            if self.answers.total() == chunk.total() >= CHUNK:
                await self._write({"goes_on": "yes"})
        self._whole = True

    async def write_down(self) -> None:
        if self.answers[Changed.DONE]:
            await self._write({} if self._whole else {"interrupted": "yes"})

    async def _write(self, more: Mapping[str, str]) -> None:
        count, held = self.answers[Changed.DONE], self.answers[Changed.KEY_HELD]
        told = {"count": str(count), **({"key_held": str(held)} if held else {}), **self._words, **more}
        await write_down(self._call, self._operation.name, counted(count, "job"), told)


def _stopped(count: int) -> Refusal:
    message = (
        f"this process stops: {counted(count, 'job')} changed, the rest is as it was: ask again, another one may go on"
    )
    return Refusal(UNAVAILABLE, "store_unavailable", message, RETRY_AFTER, {"retryable": True, "count": count})
