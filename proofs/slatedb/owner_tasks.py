"""What the owner of a store does beside serving it: bringing jobs, taking some by hand, settling for the dead.

Every call is noted before and after, so that it is known what was acknowledged, and by whom.
"""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from proofs.ledger import Entry, Ledger, Tail
from windlass import Claim, ClaimLost, Client, Fenced, NewJob, OutcomeUnknown, StoreUnavailable
from windlass.core.ids import job_id
from windlass.core.job import Token
from windlass.core.requests import Settled, Settlement
from windlass.core.verdict import ToSucceeded

T = TypeVar("T")

QUEUE: Final = "default"
"""The queue of the jobs that have a handler."""
RAW: Final = "by-hand"
"""The queue of the jobs that are claimed and acked by hand."""
CALLERS: Final = (1, 1, 1, 5)
"""How many jobs each of those who enqueue brings in one call."""
CONSUMERS: Final = 2
AHEAD: Final = 60
"""Jobs of one life that may wait: those who bring stop there until some are done."""
BY_HAND: Final = 0.02
"""Seconds that a job takes that is taken by hand."""
AGAIN: Final = 0.1
FOR_THE_DEAD: Final = "for the dead"
"""The note of settlements by the token of another process."""
FENCED: Final = "Fenced"
"""What the note of a call begins with that was refused, since another process owns the store."""


class OwnerTasks:
    """Everything that one process does by its client, until it ends."""

    def __init__(self, ledger: Ledger, client: Client, path: Path, *, bring: int, longest: float, lease: float) -> None:
        """Bring so many jobs, which take up to `longest`, and take some by hand for `lease`, both in seconds.

        `path` is where the ledger is.
        """
        self._ledger = ledger
        self._client = client
        self._tail = Tail(path)
        self._left = bring
        self._longest = longest
        self._lease = lease
        self._chance = random.Random(ledger.process)
        self._numbers = itertools.count()
        self._ahead = 0

    async def run(self) -> None:
        """Do all of it; a process that no longer owns the store does nothing more."""
        async with asyncio.TaskGroup() as group:
            for task in (self._bring_all(), self._haunt(), *(self._consume() for _ in range(CONSUMERS))):
                group.create_task(self._until_fenced(task))

    async def _until_fenced(self, task: Awaitable[None]) -> None:
        try:
            await task
        except Fenced as error:
            self._ledger.write("fault", note=f"{FENCED}: {error}")

    # bringing

    async def _bring_all(self) -> None:
        """Bring the jobs, and tell when nothing is left to do."""
        async with asyncio.TaskGroup() as group:
            for size in CALLERS:
                group.create_task(self._until_fenced(self._bring(size)))
        await self._watch()

    async def _bring(self, most: int) -> None:
        """Enqueue up to `most` jobs in each call: all or none of them."""
        while size := min(most, self._left):
            self._left -= size
            jobs = [self._new_job(next(self._numbers)) for _ in range(size)]
            ids = [str(job.id) for job in jobs]
            self._ledger.write("invoked", ids[0], note=" ".join(ids))
            await self._until_answered("enqueue", partial(self._client.enqueue_many, jobs))
            self._ledger.write("ok", ids[0], note=" ".join(ids))
            await self._keep_pace(size)

    def _new_job(self, number: int) -> NewJob:
        name = str(uuid4())
        if number % 3 == 0:
            return NewJob(RAW, payload(name), id=name)
        kind = ("on_the_loop", "in_a_thread")[number % 2]
        return NewJob(QUEUE, {"seconds": round(self._chance.uniform(0, self._longest), 4)}, kind=kind, id=name)

    async def _keep_pace(self, more: int) -> None:
        """Do not run far ahead of those who work."""
        self._ahead += more
        while self._ahead > AHEAD:
            stats = await self._until_answered("look", self._client.stats)
            self._ahead = stats.pending + stats.scheduled
            if self._ahead > AHEAD:
                await asyncio.sleep(AGAIN / 4)

    async def _until_answered(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call while the store is away; what it does is done once all the same."""
        while True:
            try:
                return await call()
            except Fenced:
                raise
            except (StoreUnavailable, OutcomeUnknown) as error:
                self._ledger.write("fault", note=f"{type(error).__name__}: {what}: {error}")
                await asyncio.sleep(AGAIN)

    # working by hand

    async def _consume(self) -> None:
        while True:
            claims = await self._until_answered("claim", self._claim)
            for claim in claims:
                self._ledger.write("begun", claim.job.id, delivery=claim.delivery, note="by hand", token=claim.token)
            await asyncio.sleep(BY_HAND)
            for claim in claims:
                self._ledger.write("ended", claim.job.id, delivery=claim.delivery, token=claim.token)
            async with asyncio.TaskGroup() as group:
                for claim in claims:
                    group.create_task(self._until_fenced(self._settle(claim)))

    def _claim(self) -> Awaitable[list[Claim]]:
        return self._client.claim_many(RAW, limit=3, lease=self._lease, wait=1)

    async def _settle(self, claim: Claim) -> None:
        job, delivery, token = claim.job.id, claim.delivery, claim.token
        try:
            await self._until_answered("settle", lambda: self._client.ack(claim))
        except ClaimLost:
            self._ledger.write("refused", job, delivery=delivery, note="by hand", token=token)
        else:
            self._ledger.write("settled", job, delivery=delivery, note="by hand", token=token)

    # the dead

    async def _haunt(self) -> None:
        """Settle by the tokens of those who are dead, each when its job has begun again here: all must be refused."""
        claimed: dict[str, Entry] = {}
        while True:
            for entry in self._tail.look():
                if entry.event != "begun":
                    continue
                before = claimed.get(entry.job)
                claimed[entry.job] = entry
                if before and before.process != entry.process == self._ledger.process and entry.token != before.token:
                    await self._settle_for(before)
            self._tail.entries.clear()
            await asyncio.sleep(AGAIN / 2)

    async def _settle_for(self, dead: Entry) -> None:
        settlement = Settlement(job_id(dead.job), Token(dead.token), ToSucceeded())
        [result] = await self._until_answered("settle", lambda: self._client.store.settle([settlement]))
        accepted = result is Settled.DONE or result is Settled.REPEATED
        self._ledger.write(
            "settled" if accepted else "refused",
            dead.job,
            delivery=dead.delivery,
            note=FOR_THE_DEAD,
            token=dead.token,
        )

    # the end

    async def _watch(self) -> None:
        while True:
            stats = await self._until_answered("look", self._client.stats)
            if not stats.pending + stats.scheduled + stats.running:
                break
            await asyncio.sleep(AGAIN)
        self._ledger.write("done")


def payload(job: str) -> bytes:
    """What is kept of a job that is taken by hand must be exactly this."""
    return sha256(job.encode()).digest() * 8
