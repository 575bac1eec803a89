"""Claims for callers over HTTP: those that wait, those that are repeated, and those whose caller hangs up."""

import asyncio
import logging
import re
from contextlib import suppress
from datetime import timedelta
from typing import Final

from windlass.api.claims import ClaimRequest
from windlass.client.claims import ClaimPause, requests_for
from windlass.core import requests as seam
from windlass.core.errors import InvalidValue, StoreUnavailable, WindlassError
from windlass.core.names import check_name
from windlass.core.requests import Settlement
from windlass.core.settings import Settings
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.core.verdict import ToReleased
from windlass.http.call import Call
from windlass.http.shared import POLL_INTERVAL, Stopping

logger = logging.getLogger("windlass.http")

CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
LOOKS_AGAIN: Final = 20
"""Of a repeat that was first sent to another process: how many looks of that one are gone through at once."""

GIVEN_BACK_WITHIN: Final = 1.0
"""Seconds for which a call that is not to wait waits all the same until what an earlier one has left is given back."""


def wanted(asked: ClaimRequest, settings: Settings) -> list[seam.ClaimRequest]:
    """Return what the store is asked for: one request for each run of queues with the same lease."""
    names = [check_name(queue, "queue") for queue in asked.queues]
    given = None if asked.lease is None else timedelta(seconds=asked.lease)
    leases = [(name, settings.of(name).lease if given is None else given) for name in names]
    kinds = None if asked.kinds is None else frozenset(asked.kinds)
    for kind in kinds or ():
        if kind is not None:
            check_name(kind, "kind")
    if asked.worker is not None and CONTROLS.search(asked.worker):
        message = "worker has a control character: give it a name that people can read"
        raise InvalidValue(message)
    if asked.by_priority:
        # the most urgent of all is one step, with one lease: the longest, so that none is too short
        longest = max(lease for _, lease in leases)
        return [seam.ClaimRequest(names, asked.limit, longest, kinds, asked.worker, by_priority=True)]
    made = requests_for(leases, limit=asked.limit, kinds=None, worker=asked.worker)
    return [each._replace(kinds=kinds) for each in made]


class WaitingClaim:
    """One call that claims, and waits for a job if there is none.

    A store may keep the answer to each request that has a name, also an empty one: so each look has a name of its own,
    made from that of the call. A repeat goes through the same names, and finds the look that was given jobs.
    """

    def __init__(self, call: Call[ClaimRequest]) -> None:
        self._call = call
        self._store: Store = call.store
        self._requests = wanted(call.asked, call.client.settings)
        self._pause = ClaimPause(call.store, call.client.clock, call.asked.queues, POLL_INTERVAL)
        self._look = 0

    async def now(self) -> seam.Claimed:
        """Return what is ready now."""
        look, self._look = self._look, self._look + 1
        if not look:
            await self._until_given_back()
        if len(self._requests) == 1:
            return await self._store.claim(self._requests[0], request_id=self._name(look, 0))
        claimed = seam.Claimed([])
        for run, request in enumerate(self._requests):
            if (left := request.limit - len(claimed.jobs)) > 0:
                asked = request._replace(limit=left)
                claimed = claimed.and_then(await self._store.claim(asked, request_id=self._name(look, run)))
        return claimed

    async def in_time(self) -> seam.Claimed:
        """Return what is ready, or as soon as something is; nothing when the time is over or the process stops."""
        shared, queues = self._call.shared, self._call.asked.queues
        timeout = 0.0 if shared.stopping else self._call.asked.wait
        with shared.listeners.bell([queue_topic(queue) for queue in queues]) as bell, suppress(Stopping):
            return await bell.find(self._safely, timeout=timeout, pause=self._pause_after)
        return seam.Claimed([])

    async def _pause_after(self, claimed: seam.Claimed) -> float:
        quick = LOOKS_AGAIN if self._call.first_elsewhere else 0
        return 0.0 if self._look <= quick else await self._pause.after(claimed)

    async def _until_given_back(self) -> None:
        """Let the store tell a repeat of the jobs of the first, but of none that are about to go back."""
        shared = self._call.shared
        longest = GIVEN_BACK_WITHIN if shared.stopping else max(GIVEN_BACK_WITHIN, self._call.asked.wait)
        try:
            await shared.finished(self._call.request_id, longest=longest)
        except TimeoutError:
            message = (
                "the store has not answered an earlier call of this name, whose caller has gone, and what that is "
                "given goes back first: nothing was claimed, try again"
            )
            raise StoreUnavailable(message, retryable=True) from None

    async def _safely(self) -> seam.Claimed:
        """Look, and give back what comes after the caller has hung up."""
        under_way = asyncio.ensure_future(self.now())
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            given_back = asyncio.ensure_future(_give_back(self._store, under_way))
            self._call.shared.finish(given_back, self._call.request_id)
            raise

    def _name(self, look: int, run: int) -> str | None:
        name = self._call.request_id
        return name if name is None or not (look or run) else f"{name}~{look}.{run}"


async def _give_back(store: Store, under_way: "asyncio.Future[seam.Claimed]") -> None:
    try:
        claimed = await under_way
        if claimed:
            await store.settle([Settlement(claim.job.id, claim.token, ToReleased()) for claim in claimed.jobs])
    except WindlassError:
        logger.exception("claims whose caller had gone could not be given back: rescue will")
