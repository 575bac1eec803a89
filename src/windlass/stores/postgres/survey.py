"""Raises marks in the background, as jobs are claimed; see docs/decisions/0013-marks.md."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from windlass.core.errors import WindlassError
from windlass.core.job import Claim
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.moves.marks import Due, Leases, Line, Ready
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Changes, Statement, Work

logger = logging.getLogger("windlass.postgres")

RAISE_AFTER: Final = 5_000
"""Jobs that left a line since its mark was raised: so many rows that are gone cost a claim about a millisecond."""
WAIT_FOR_WRITERS: Final = 5.0
LOOK_FOR_WRITERS: Final = 0.05
CHECK_EVERY: Final = 60.0
"""Seconds between two looks of a process whether the marks are right; it must not take a claim that gives jobs to begin
one, since a wrong mark may hide them all."""
_SET_BACK: Final = "was the database's clock set back?"


class Survey:
    """Counts what leaves each line, and raises its mark when it was much."""

    def __init__(self, runner: Runner, *, on: bool) -> None:
        """Work through `runner`, or not at all: marks rest on a clock that goes by itself."""
        self._runner = runner
        self._on = on
        self._left: Counter[Line] = Counter()
        self._under_way: asyncio.Task[None] | None = None
        # processes that were started together do not look together
        self._check_at = asyncio.get_running_loop().time() + CHECK_EVERY * random.random()  # noqa: S311 - no secret

    def claimed(self, claims: Sequence[Claim]) -> None:
        """Note what was claimed, also when it was nothing."""
        if not self._on:
            return
        jobs = [claim.job for claim in claims]
        for (queue, priority), count in Counter([(job.queue, job.priority) for job in jobs]).items():
            self._left[Ready(queue, priority)] += count
        # one that stands at a later time than that of its enqueue has come through the line of scheduled jobs
        self._left.update([Due(job.queue) for job in jobs if job.run_at > job.created_at])
        self._left[Leases()] += len(jobs)
        self._begin()

    async def close(self) -> None:
        """Leave it as it is."""
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait({self._under_way})

    def _begin(self) -> None:
        if self._under_way is not None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._check_at or any(count >= RAISE_AFTER for count in self._left.values()):
            self._under_way = loop.create_task(self._raise_all(), name="windlass survey")
            self._under_way.add_done_callback(self._ended)

    def _ended(self, survey: "asyncio.Task[None]") -> None:
        self._under_way = None
        if not survey.cancelled() and (error := survey.exception()) is not None:
            logger.error("the marks of waiting jobs could not be raised", exc_info=error)

    async def _raise_all(self) -> None:
        for line in [line for line, count in self._left.items() if count >= RAISE_AFTER]:
            self._left[line] = 0
            try:
                await self._raise(line)
            except WindlassError as error:
                # claims are as right as before, and no faster
                logger.debug("a mark could not be raised: %s", error)
        if asyncio.get_running_loop().time() >= self._check_at:
            await self._check()

    async def _check(self) -> None:
        """Look whether every mark is right: nothing but a clock that was set back makes one wrong."""
        self._check_at = asyncio.get_running_loop().time() + CHECK_EVERY
        try:
            if await self._runner.run(lambda _: marks.check_leases()):
                logger.warning("the mark of leases lay after one of them and was dropped: %s", _SET_BACK)
            for queue in await self._runner.look(lambda _: _marked()):
                if await self._runner.run(partial(_checked, queue)):
                    logger.warning("marks of queue %r lay after waiting jobs and were dropped: %s", queue, _SET_BACK)
        except WindlassError as error:
            logger.debug("the marks could not be looked over: %s", error)

    async def _raise(self, line: Line) -> None:
        look = await self._runner.look(lambda _: marks.look(line))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_FOR_WRITERS
        while not await self._runner.look(lambda _: marks.ended(look.writers)):
            if loop.time() > deadline:
                return
            await asyncio.sleep(LOOK_FOR_WRITERS)
        await self._runner.run(lambda _: marks.raise_mark(line, look.mark))


def _checked(queue: str, _: Changes) -> Work[bool]:
    return marks.check(queue)


def _marked() -> Work[list[str]]:
    rows = yield Statement("marked_queues")
    return [row[0] for row in rows]
