"""Claiming: from one look at the store to a sleep until a job comes."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from typing import Final

from windlass.client.bell import Listeners, pause_until
from windlass.core.clock import Clock
from windlass.core.errors import WindlassError
from windlass.core.job import Claim
from windlass.core.requests import Claimed, ClaimRequest, Settlement
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.core.verdict import ToReleased

logger = logging.getLogger("windlass")

SAFETY_LOOK: Final = 30.0
"""Seconds after which a waiting claim looks again although nothing rang: a lost ring costs this much, not a job."""
STRANDED_INTERVAL: Final = 10.0
DEAD_AFTER: Final = timedelta(seconds=60)


class Claimer:
    """Claims for one client."""

    def __init__(
        self, store: Store, listeners: Listeners, *, clock: Clock, poll_interval: float, rescued: bool
    ) -> None:
        """`rescued`: this process rescues by itself, so expired leases are nobody's worry."""
        self._store = store
        self._listeners = listeners
        self._clock = clock
        self._poll_interval = poll_interval
        self._rescued = rescued
        self._late: set[asyncio.Task[None]] = set()
        self._stranded_at = float("-inf")
        self._warned = False

    async def claim(self, requests: Sequence[ClaimRequest]) -> Claimed:
        """Return what is ready now: of each request in turn, all together at most the limit of the first."""
        claimed = await self._claim_all(requests)
        if not claimed.jobs and not self._rescued:
            await self._look_for_stranded()
        return claimed

    async def claim_in_time(self, requests: Sequence[ClaimRequest], wait: float) -> Claimed:
        """Return what is ready, or as soon as something is, within `wait` seconds."""
        queues = [queue for request in requests for queue in request.queues]
        pause = ClaimPause(self._store, self._clock, queues, self._poll_interval)
        with self._listeners.bell([queue_topic(queue) for queue in queues]) as bell:
            return await bell.find(lambda: self.claim(requests), timeout=wait, pause=pause.after)

    async def close(self) -> None:
        """Return when claims that came too late for their callers are given back."""
        while self._late:
            # gather would not yield for those that are done already, and what takes them out would never run
            await asyncio.wait(self._late)

    async def _claim_all(self, requests: Sequence[ClaimRequest]) -> Claimed:
        if len(requests) == 1:
            return await self._claim_safely(requests[0])
        claimed = Claimed([])
        try:
            for request in requests:
                if (left := request.limit - len(claimed.jobs)) > 0:
                    claimed = claimed.and_then(await self._claim_safely(request._replace(limit=left)))
        except BaseException:
            self._keep(asyncio.create_task(self._release(claimed.jobs)))
            raise
        return claimed

    async def _claim_safely(self, request: ClaimRequest) -> Claimed:
        """Claim, and give back what comes after the caller has gone."""
        under_way = asyncio.ensure_future(self._store.claim(request))
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            self._keep(asyncio.create_task(self._give_back(under_way)))
            raise

    async def _give_back(self, under_way: asyncio.Future[Claimed]) -> None:
        # an error of the claim itself is nobody's any more: nothing was claimed
        with suppress(WindlassError):
            await self._release((await under_way).jobs)

    async def _release(self, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        try:
            await self._store.settle([Settlement(claim.job.id, claim.token, ToReleased()) for claim in claims])
        except WindlassError:
            logger.exception("%d claims whose caller had gone could not be given back: rescue will", len(claims))

    def _keep(self, late: asyncio.Task[None]) -> None:
        self._late.add(late)
        late.add_done_callback(self._late.discard)

    async def _look_for_stranded(self) -> None:
        now = self._clock.monotonic()
        if now < self._stranded_at + STRANDED_INTERVAL:
            return
        self._stranded_at = now
        count = await self._store.stranded(dead_after=DEAD_AFTER)
        if count and not self._warned:
            logger.warning(
                "%d leases have run out and no server is alive to rescue them: start a server, "
                "or connect with services=True, or call client.rescue()",
                count,
            )
        self._warned = count > 0


class ClaimPause:
    """Time after which a waiting claim is tried again although there was no news."""

    def __init__(self, store: Store, clock: Clock, queues: Sequence[str], poll_interval: float) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues
        self._longest = SAFETY_LOOK if store.features.misses_no_news else poll_interval

    async def after(self, claimed: Claimed) -> float:
        """Return the seconds until the next try, after one that was given no job."""
        return pause_until(await self._store.due_in(self._queues), claimed.next_at, self._clock, self._longest)


def requests_for(
    queues: Sequence[tuple[str, timedelta]],
    *,
    limit: int,
    kinds: Collection[str] | None,
    worker: str | None,
) -> list[ClaimRequest]:
    """Return one request for each run of queues with the same lease, in the order of `queues`."""
    return [
        ClaimRequest([queue for queue, _ in run], limit, lease, kinds, worker)
        for lease, run in groupby(queues, key=lambda pair: pair[1])
    ]
