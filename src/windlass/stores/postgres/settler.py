"""Settlements of many callers: plain successes go out together, the others each by themselves."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.failpoint import removed
from windlass.core.ids import JobId
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.kit.gather import Gather
from windlass.kit.settlements import is_plain
from windlass.stores.postgres.enqueuer import PATIENCE, doubt_of
from windlass.stores.postgres.faults import has_waited_in_vain
from windlass.stores.postgres.moves.ack import ack_many, acked_before
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.settler_of_one import SettlerOfOne, may_be_for_one

MOST_TOGETHER: Final = 1_000
"""Settlements in one statement, unless one caller brings more."""


class Settler:
    """Writes how claims ended."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str], *, timeout: float) -> None:
        """Write through `runner`; what does not go out within `timeout` seconds is not sent any more."""
        self._runner = runner
        self._new_request_id = new_request_id
        self._of_one = SettlerOfOne(runner, new_request_id)
        self._kept: Gather[Sequence[Settlement], set[JobId]] = Gather(
            self._ack, most=MOST_TOGETHER, weight=len, patience=timeout
        )
        self._forgotten: Gather[Sequence[Settlement], set[JobId]] = Gather(
            self._ack, most=MOST_TOGETHER, weight=len, patience=timeout
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._kept.close()
        await self._forgotten.close()

    async def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        """Settle each; a request that was served before is given its first answers."""
        if request_id is not None or not _can_be_parted(settlements):
            return await self._of_one.settle(settlements, request_id)
        done: set[JobId] = set()
        plain = [settlement for settlement in settlements if is_plain(settlement)]
        kept = [settlement for settlement in plain if settlement.keep]
        if kept:
            done |= await self._kept.submit(kept)
        if len(kept) < len(plain):
            done |= await self._forgotten.submit([settlement for settlement in plain if not settlement.keep])
        if len(done) == len(settlements):
            return [Settled.DONE] * len(settlements)
        # what was refused among them, and what is locked, is nothing to those of other callers
        left = [settlement for settlement in settlements if settlement.job_id not in done]
        answers = iter(await self._of_one.settle(left, None))
        return [Settled.DONE if one.job_id in done else next(answers) for one in settlements]

    async def _ack(self, batches: list[Sequence[Settlement]]) -> list[set[JobId] | BaseException]:
        """Settle the plain successes of some callers, the first that comes with each job."""
        first: dict[JobId, Settlement] = {}
        mine: list[list[JobId]] = []
        for batch in batches:
            fresh = [settlement for settlement in batch if settlement.job_id not in first]
            first.update((settlement.job_id, settlement) for settlement in fresh)
            mine.append([settlement.job_id for settlement in fresh])
        try:
            done = await self._ack_what_can_be(list(first.values()))
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own
            return [doubt_of(batch[0].job_id, unknown) for batch in batches]
        return [done.intersection(ids) for ids in mine]

    async def _ack_what_can_be(self, chosen: Sequence[Settlement]) -> set[JobId]:
        """Settle what is neither locked nor refused; nobody waits here for long."""
        name = self._new_request_id()
        try:
            return await self._runner.run(
                lambda changes: ack_many(changes, chosen, name, patience=PATIENCE),
                whole=False,
                again=partial(acked_before, chosen, name),
                doubt=chosen[0].job_id,
            )
        except StoreUnavailable as error:
            locked = has_waited_in_vain(error)
            if not locked and not may_be_for_one(error):
                raise
        return await self._of_one.settle_free(chosen) if locked and len(chosen) > 1 else set()


def _can_be_parted(settlements: Sequence[Settlement]) -> bool:
    """Whether plain successes among them may be written before the others: each is of another job, and brings none."""
    if removed("fence") or any(settlement.then for settlement in settlements):
        return False
    return len({settlement.job_id for settlement in settlements}) == len(settlements)
