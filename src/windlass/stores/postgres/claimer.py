"""Claims: mostly one statement, more when jobs have come due or kinds are ahead that the caller does not know."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest
from windlass.stores.postgres.moves.claim import Heads, claim_chosen, claim_heads, claimed_before
from windlass.stores.postgres.moves.promote import promote_queues
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Changes, Work

PROMOTED_AT_ONCE: Final = 1_000
TRIES: Final = 10
"""How often a claim looks again: jobs came due, strange kinds were ahead, others were faster."""
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

    async def claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        """Give up to `limit` jobs; a request that was served before is given the same ones."""
        if request.limit < 1 or not request.queues:
            return []
        request = request._replace(queues=list(dict.fromkeys(request.queues)))
        claims = await self._claim(request, request_id)
        self._claimed(claims)
        return claims

    async def _claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        choose = request.by_priority or self._strangers_ahead(request)
        heads, promoted = Heads([]), False
        for turn in range(TRIES):
            move = partial(claim_chosen if choose else claim_heads, promoted=promoted)
            heads = await self._try(request, _name_of(request_id, turn), move)
            if heads.claims:
                break
            if heads.due:
                # a flood that does not end must not keep the jobs that are ready waiting
                promoted = await self._promote(request) < PROMOTED_AT_ONCE or turn >= LAST_PROMOTION
            elif heads.stranger:
                self._strangers_until.update(dict.fromkeys(request.queues, time.monotonic() + STRANGERS_FOR))
                choose = True
            elif not heads.overtaken and not heads.repeated:
                break
        return heads.claims

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
