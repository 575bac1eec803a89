"""Settlements of one caller: written together, and apart where something is locked or refused."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from windlass.core.errors import OutcomeUnknown, StoreCorrupt, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.stores.postgres.enqueuer import PATIENCE, doubt_of
from windlass.stores.postgres.faults import has_waited_in_vain, refuses_what_was_written
from windlass.stores.postgres.moves.settle import keep_answers, settle_once, settled_before
from windlass.stores.postgres.runner import Runner

logger = logging.getLogger("windlass.postgres")

APART_FOR: Final = 1.0
"""Seconds after which a batch that has to be written in parts is answered with what was written by then."""


class SettlerOfOne:
    """Writes how the claims of one caller ended.

    Of many settlements those that can be written are, and the others are answered by why not: nobody else waits for a
    job that is locked, or for a row that the database refuses.
    """

    def __init__(self, runner: Runner, new_request_id: Callable[[], str]) -> None:
        """Write through `runner`."""
        self._runner = runner
        self._new_request_id = new_request_id

    async def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        """Settle each; a request that was served before is given its first answers."""
        name = request_id or self._new_request_id()
        try:
            return await self._try(settlements, name)
        except StoreUnavailable as error:
            if not has_waited_in_vain(error) and not may_be_for_one(error):
                raise
        if request_id is not None and (before := await self._before(name)) is not None:
            return before
        results = await self._settle_apart(settlements, name)
        if results is None:
            results = await self._halve(settlements, asyncio.get_running_loop().time() + APART_FOR)
            if request_id is not None:
                await self._keep(name, results)
        return _unless_all_are_refused(results)

    async def settle_free(self, settlements: Sequence[Settlement]) -> set[JobId]:
        """Settle those that are not locked, of different jobs; return which were, and none when more is in the way."""
        results = await self._settle_apart(settlements, self._new_request_id()) or ()
        return {one.job_id for one, result in zip(settlements, results, strict=False) if result is Settled.DONE}

    def _before(self, name: str) -> Coroutine[Any, Any, list[SettleResult] | None]:
        """Return what was answered in parts, whose repetition meets the same refusals before its receipt."""
        return self._runner.look(lambda _: settled_before(name))

    async def _settle_apart(self, settlements: Sequence[Settlement], name: str) -> list[SettleResult] | None:
        """Settle those that are not locked; None when more than that is in the way of one of them."""
        try:
            return await self._try(settlements, name, free=True)
        except StoreUnavailable as error:
            if len(settlements) == 1:
                return [error]
            if has_waited_in_vain(error) or may_be_for_one(error):
                return None
            raise

    async def _halve(self, settlements: Sequence[Settlement], until: float) -> list[SettleResult]:
        """Part what is refused as a whole, until those are alone that are refused for themselves."""
        middle = len(settlements) // 2
        results: list[SettleResult] = []
        for half in (settlements[:middle], settlements[middle:]):
            results += await self._settle_half(half, until)
        return results

    async def _settle_half(self, half: Sequence[Settlement], until: float) -> list[SettleResult]:
        if asyncio.get_running_loop().time() >= until:
            return [_not_in_time(settlement.job_id) for settlement in half]
        try:
            results = await self._settle_apart(half, self._new_request_id())
        except OutcomeUnknown as unknown:
            return [doubt_of(settlement.job_id, unknown) for settlement in half]
        except StoreUnavailable as error:
            # not raised: the other half may have been written
            return [error] * len(half)
        return await self._halve(half, until) if results is None else results

    async def _keep(self, name: str, results: Sequence[SettleResult]) -> None:
        """Keep the answers for a caller who asks again, unless they are no more than doubts."""
        if any(isinstance(result, OutcomeUnknown) for result in results):
            return
        try:
            await self._runner.run(lambda changes: keep_answers(changes, name, results))
        except WindlassError as error:
            logger.debug("the answers to %d settlements are not kept: %s", len(results), error)

    async def _try(self, settlements: Sequence[Settlement], name: str, *, free: bool = False) -> list[SettleResult]:
        results = await self._runner.run(
            lambda changes: settle_once(changes, settlements, name, patience=PATIENCE, free=free),
            again=partial(settled_before, name),
            doubt=settlements[0].job_id if settlements else None,
        )
        return results or []


def may_be_for_one(error: StoreUnavailable) -> bool:
    """Whether it may be one of many settlements, and not the call, that the database refuses for good."""
    return not error.retryable and type(error) in (StoreUnavailable, StoreCorrupt)


def _not_in_time(job_id: JobId) -> StoreUnavailable:
    return StoreUnavailable(
        f"job {job_id} was not settled in time, since others of its call are locked or refused: try again",
        retryable=True,
    )


def _unless_all_are_refused(results: list[SettleResult]) -> list[SettleResult]:
    """Raise what has kept all of them from being written, where it seems to be about none of them."""
    refused = [result for result in results if isinstance(result, StoreUnavailable) and not result.retryable]
    if refused and len(refused) == len(results) and not any(refuses_what_was_written(error) for error in refused):
        raise refused[0]
    return results
