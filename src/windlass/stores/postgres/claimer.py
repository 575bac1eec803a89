"""Claims: mostly one statement, more when jobs have come due or kinds are ahead that the caller does not know."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from windlass.core.errors import WindlassError
from windlass.core.job import Claim, Failure
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.verdict import ToDead
from windlass.kit.damage import dead_reason
from windlass.stores.postgres.enqueuer import PATIENCE
from windlass.stores.postgres.moves.claim import Heads, Undecoded, claim_chosen, claim_heads, claimed_before, set_aside
from windlass.stores.postgres.moves.promote import promote_queues
from windlass.stores.postgres.moves.settle import settle_once, settled_before
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Changes, Work

logger = logging.getLogger("windlass.postgres")

PROMOTED_AT_ONCE: Final = 1_000
TRIES: Final = 10
"""How often a claim looks again: jobs came due, strange kinds were ahead, others were faster."""
MOST_TRIES: Final = 100
"""How often it does while it meets damaged jobs each time."""
LAST_PROMOTION: Final = TRIES // 2
"""The turn after which a claim no longer waits for all due jobs to be promoted."""
STRANGERS_FOR: Final = 1.0
"""Seconds for which a queue with unknown kinds ahead is claimed from kind by kind without another look."""


class Claimer:
    """Gives ready jobs to callers."""

    def __init__(
        self, runner: Runner, claimed: Callable[[Sequence[Claim]], None], new_request_id: Callable[[], str]
    ) -> None:
        """Claim through `runner`; `claimed` is told of every claim."""
        self._runner = runner
        self._claimed = claimed
        self._new_request_id = new_request_id
        self._strangers_until: dict[str, float] = {}

    async def claim(self, request: ClaimRequest, request_id: str | None) -> Claimed:
        """Give up to `limit` jobs; a request that was served before is given the same ones."""
        if request.limit < 1 or not request.queues:
            return Claimed([])
        request = request._replace(queues=list(dict.fromkeys(request.queues)))
        claims = await self._claim(request, request_id)
        self._claimed(claims)
        return Claimed(claims)

    async def _claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        choose = request.by_priority or self._strangers_ahead(request)
        heads, promoted = Heads([]), False
        turn, tries = 0, TRIES
        while turn < tries:
            move = partial(claim_chosen if choose else claim_heads, promoted=promoted)
            heads = await self._try(request, _name_of(request_id, turn), move)
            if heads.undecoded:
                await self._give_up(heads.undecoded)
            if heads.claims:
                break
            if heads.damaged or heads.undecoded:
                await self._set_aside(heads.damaged, request.queues)
                tries = min(tries + 1, MOST_TRIES)
            elif heads.due:
                # a flood that does not end must not keep the jobs that are ready waiting
                promoted = await self._promote(request) < PROMOTED_AT_ONCE or turn >= LAST_PROMOTION
            elif heads.stranger:
                self._strangers_until.update(dict.fromkeys(request.queues, time.monotonic() + STRANGERS_FOR))
                choose = True
            elif not heads.overtaken and not heads.repeated:
                break
            turn += 1
        return heads.claims

    async def _set_aside(self, seqs: Sequence[int], queues: Sequence[str]) -> None:
        """Make damaged jobs dead that a claim has met: they must not keep the others waiting."""
        if not seqs:
            return
        for job_id, error in await self._runner.run(
            lambda changes: set_aside(changes, seqs, list(queues)), whole=False
        ):
            logger.error("job %s is dead: %s", job_id, error)

    async def _give_up(self, undecoded: Sequence[Undecoded]) -> None:
        """Make jobs dead that were claimed but do not decode: they would stay claimed until their leases end."""
        settlements = [Settlement(one.job_id, one.token, ToDead(_failure(one))) for one in undecoded]
        name = self._new_request_id()
        try:
            await self._runner.run(
                lambda changes: settle_once(changes, settlements, name, patience=PATIENCE),
                again=lambda: _or_nothing(settled_before(name)),
            )
        except WindlassError as error:
            logger.error("%d damaged jobs stay claimed until their leases end: %s", len(undecoded), error)  # noqa: TRY400 - it says why
            return
        for one in undecoded:
            logger.error("job %s is dead: %s", one.job_id, dead_reason(one.damage))

    async def _try(
        self,
        request: ClaimRequest,
        request_id: str | None,
        move: Callable[[Changes, ClaimRequest, str], Work[Heads]],
    ) -> Heads:
        named = request_id or self._new_request_id()

        def work(changes: Changes) -> Work[Heads]:
            # who names a request may have made it before
            changes.repeated = changes.repeated or request_id is not None
            return move(changes, request, named)

        return await self._runner.run(work, whole=False, again=lambda: claimed_before(request, named))

    async def _promote(self, request: ClaimRequest) -> int:
        def work(changes: Changes) -> Work[int]:
            promoted = yield from promote_queues(changes, request.queues, PROMOTED_AT_ONCE)
            yield from changes.flush()
            return promoted

        return await self._runner.run(work)

    def _strangers_ahead(self, request: ClaimRequest) -> bool:
        if request.kinds is None or not self._strangers_until:
            return False
        now = time.monotonic()
        return any(self._strangers_until.get(queue, now) > now for queue in request.queues)


def _name_of(request_id: str | None, turn: int) -> str | None:
    """Return how a turn of a request is known: each has a receipt of its own, also one that was given nothing."""
    return f"{request_id}#{turn}" if request_id and turn else request_id


def _failure(one: Undecoded) -> Failure:
    return Failure(dead_reason(one.damage))


def _or_nothing(work: Work[list[SettleResult] | None]) -> Work[list[SettleResult]]:
    return (yield from work) or []
