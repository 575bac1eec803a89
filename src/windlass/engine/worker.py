"""The worker: claims jobs for the free slots of a server and starts them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from windlass.client.bell import Bell
from windlass.client.claims import SOONEST
from windlass.core.clock import Clock, Rng
from windlass.core.errors import Fenced
from windlass.core.job import Claim, Job, Token
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.core.verdict import LEASE_EXPIRED, GivenBack, Outcome, Stopped
from windlass.engine.ahead_watch import AheadWatch
from windlass.engine.attempt import Attempt
from windlass.engine.claim_plan import ClaimPlan
from windlass.engine.deadlines import Deadlines
from windlass.engine.eager_task import eager_task
from windlass.engine.look_ahead import LookAhead
from windlass.engine.office import Office
from windlass.engine.outcomes import CANCELLED_ON_REQUEST
from windlass.engine.ready import ReadyHandler
from windlass.engine.service import backoff, trace_of
from windlass.engine.settlements import Move, Settlements
from windlass.engine.tally import Tally
from windlass.engine.within import ends_within

logger = logging.getLogger("windlass")

FAST: Final = 200
"""Jobs that may wait here from which on two claims are under way at once: while one is begun the other comes."""
LONGEST_TURN: Final = 0.005
"""Seconds of starting jobs at a stretch, before the event loop gets to do something else."""
_LOOK_EVERY: Final = 16


class Worker:
    """Keeps the slots of one server busy.

    `held` has every claim from its first moment until it is settled and its code has ended: what is renewed.
    """

    def __init__(
        self,
        store: Store,
        plan: ClaimPlan,
        find: Callable[[Job], ReadyHandler],
        *,
        slots: int,
        office: Office,
        settlements: Settlements,
        start: Callable[[Attempt], None],
        late: Callable[[Attempt], None],
        clock: Clock,
        rng: Rng,
        poll_interval: timedelta,
        failed: Callable[[Exception], None],
        claimed: Callable[[list[Move]], None] | None = None,
        tally: Tally | None = None,
    ) -> None:
        """Start attempts by `start`; `late` is told of one past its timeout, `failed` of an error of the store."""
        self._store = store
        self._most_unsettled = store.features.most_unsettled
        self._plan = plan
        self._find = find
        self._slots = slots
        self._office = office
        self._settlements = settlements
        self._start = start
        self._clock = clock
        self._rng = rng
        self._poll_interval = poll_interval.total_seconds()
        self._failed = failed
        self._claimed = claimed
        self._tally = tally or Tally()
        self._deadlines = Deadlines(clock, late)
        self._bell = Bell(clock)
        self._loop = asyncio.get_running_loop()
        self.held: dict[Token, Attempt] = settlements.held
        self.running: set[Attempt] = set()
        self._ahead: deque[Attempt] = deque()
        self._behind: list[list[Attempt]] = []
        self._sole: Attempt | None = None
        settlements.written = self._written
        self._look_ahead = LookAhead()
        self._watch = AheadWatch(self, store, clock)
        self._low = 0
        self._asked = 0
        self._next: asyncio.Task[int] | None = None
        self._full = False
        self._fast = False
        self._dry = False
        self._piled = False
        self._pumping = False
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.finished = 0
        self.failing_since: float | None = None
        """When the first of the claims failed that were not answered since."""

    @property
    def queues(self) -> list[str]:
        """Every queue that is worked."""
        return self._plan.queues

    def begin(self) -> None:
        """Begin to claim."""
        self._task = self._loop.create_task(self._claim_for_ever(), name="windlass worker")

    def end(self) -> None:
        """Claim no more and give back what was not started; what runs goes on."""
        self._stopping = True
        self._bell.ring()
        self._release_all()
        if self._sole is not None and self._sole not in self.running:
            self._release(self._sole)
        self._watch.end()

    async def last_claim(self, within: float) -> None:
        """Wait for the claim that is on its way, and give back what it brings; at most `within` seconds.

        Without an answer by then, what it may still have taken is left to its lease.
        """
        if self._task is not None and not await ends_within(self._task, within, self._clock):
            self._task.cancel()
            await asyncio.wait((self._task,))

    def abandon(self) -> None:
        """Claim no more at once, and give nothing back."""
        self._stopping = True
        for line in (self._ahead, *self._behind):
            line.clear()
        self.held.clear()
        self._watch.end()
        for task in (self._task, self._next):
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Watch nothing any more."""
        self._deadlines.close()
        self._watch.close()

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take the end of an attempt's code: its slot is free, and it is settled unless it was before."""
        attempt.over = True
        self.finished += 1
        if attempt.started_at is not None and attempt.counts is not None:
            attempt.counts.ran.add(self._clock.monotonic() - attempt.started_at)
        self.running.discard(attempt)
        if attempt is self._sole:
            self._sole = None
        if attempt.timeout is not None:
            self._deadlines.discard(attempt, attempt.timeout)
        if attempt.settled:
            self.held.pop(attempt.token, None)
        else:
            self._settlements.add(attempt, outcome)
        if self._ahead or self._sole is not None:
            self._pump()
        self._want_more()

    # claiming

    def _want_more(self) -> None:
        """Claim again, if that waits for what was claimed to be begun."""
        if self._full and len(self._ahead) <= self._low:
            self._full = False
            self._bell.ring()

    async def _claim_for_ever(self) -> None:
        topics = [queue_topic(queue) for queue in self._plan.queues]
        stops = [self._store.listen(topics, self._bell.ring), self._watch.listen()]
        failures = 0
        try:
            while self._next is not None or not self._stopping:
                self._bell.clear()
                try:
                    wait = await self._claim_once()
                    failures, self.failing_since = 0, None
                except Fenced as error:
                    self._failed(error)
                    return
                except Exception as error:
                    failures += 1
                    self.failing_since = self.failing_since or self._clock.monotonic()
                    self._tally.fail("claim")
                    wait = backoff(failures, self._rng)
                    text = "cannot claim (%d times in a row), again in %.1f s: %s"
                    logger.warning(text, failures, wait, error, exc_info=trace_of(error))
                    self._failed(error)
                if not self._stopping and (wait is None or wait > 0):
                    await self._bell.wait(wait)
                else:
                    # a store in memory answers without a wait: what was begun and what ended must get on
                    await asyncio.sleep(0)
        finally:
            for stop in stops:
                stop()
            if self._next is not None:
                self._next.cancel()
                await asyncio.gather(self._next, return_exceptions=True)

    async def _claim_once(self) -> float | None:
        """Claim what there is room for; return how long to sleep, None until a slot is free."""
        claim = self._next or self._begin_claim(None)
        self._next = None
        if claim is None:
            self._full = True
            return None
        if self._fast and not self._dry and not self._stopping:
            self._next = self._begin_claim(claim)
        claimed = await claim
        self._dry = not claimed
        if claimed or self._next is not None:
            # there may be more; a look without a job is the sign to sleep
            return 0.0
        return await self._idle_for()

    def _begin_claim(self, before: "asyncio.Task[int] | None") -> "asyncio.Task[int] | None":
        limit = self._room()
        if limit <= 0:
            return None
        self._asked += limit
        # at once: it may have to wait until the rows of another one are read, and the store is idle meanwhile
        return eager_task(self._claim(limit, before), self._loop, name="windlass claim")

    async def _claim(self, limit: int, before: "asyncio.Task[int] | None") -> int:
        """Claim jobs, and begin them after those of the claim before; return how many there were."""
        claimed = 0
        try:
            for request in self._plan.requests(limit):
                began, pauses = self._clock.monotonic(), self._watch.pauses
                claims = await self._store.claim(request._replace(limit=limit - claimed))
                if claims:
                    self._look_ahead.took(self._clock.monotonic() - began)
                    claimed += len(claims)
                    self._asked -= len(claims)
                    await self._take_in_line(self._hold(claims), before, pauses)
                if claimed >= limit or self._stopping or self._sole is not None:
                    break
        finally:
            self._asked -= limit - claimed
        # one that waits to be alone is not begun while a claim is under way
        self._pump()
        return claimed

    def _room(self) -> int:
        """Return how many jobs to claim: for every free slot, and ahead of them what is soon begun."""
        self._piled = len(self._settlements) > self._most_unsettled
        if self._sole is not None or self._piled:
            self._low = self._slots
            return 0
        ahead = self._look_ahead.most(self._clock.monotonic(), self.finished)
        # one slot means one after the other, strictly in line: two claims at once could mix their jobs
        self._fast = ahead >= FAST and self._slots > 1
        free = self._slots - len(self.running) - len(self._ahead) - sum(map(len, self._behind)) - self._asked
        self._low = ahead // 2
        if free < -self._low:
            return 0
        return min(free + ahead, max(free, 0) + ahead // 2) if self._fast else free + ahead

    async def _idle_for(self) -> float:
        due_in = await self._store.due_in(self._plan.queues)
        if due_in is None:
            return self._poll_interval
        return min(self._poll_interval, max(SOONEST, due_in.total_seconds()))

    def _hold(self, claims: list[Claim]) -> list[Attempt]:
        now = self._clock.monotonic()
        self._tally.claimed += len(claims)
        leases: Mapping[str, timedelta] = self._plan.leases
        attempts = [
            Attempt(claim, self._find(claim.job), leases[claim.job.queue].total_seconds(), now, self._office)
            for claim in claims
        ]
        for attempt in attempts:
            self.held[attempt.token] = attempt
        return attempts

    async def _take_in_line(self, attempts: list[Attempt], before: "asyncio.Task[int] | None", pauses: int) -> None:
        """Take claims after those of the claim before; what is given back while they wait leaves `attempts`."""
        self._behind.append(attempts)
        try:
            if self._claimed is not None:
                await self._tell_of_claims([attempt.job for attempt in attempts])
            if self._watch.pauses != pauses:
                # before the answer came: nobody saw them then
                await self._watch.release_paused()
            if before is not None and not before.done():
                self._watch.begin()
                await asyncio.wait((before,))
        finally:
            # also when a stop waits no longer, which gives them back
            self._behind.remove(attempts)
            self._take(attempts)

    async def _tell_of_claims(self, jobs: list[Job]) -> None:
        if any(job.delivery > 1 for job in jobs):
            # its end here may be written and not answered yet, and is told before it begins again
            await self._settlements.answered()
        if self._claimed is not None:
            self._claimed([Move(job, State.PENDING, State.RUNNING) for job in jobs])

    def _take(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            job = attempt.job
            if self._stopping:
                self._release(attempt)
            elif job.cancel_requested:
                self._settlements.add(attempt, Stopped(CANCELLED_ON_REQUEST))
            elif may_be_poison(job):
                self._take_alone(attempt)
            else:
                self._ahead.append(attempt)
        self._pump()

    def _take_alone(self, attempt: Attempt) -> None:
        """Keep one job that may kill its process; a second one would come to its end with it, and never have begun."""
        if self._sole is None:
            self._sole = attempt
        else:
            self._release(attempt)

    # starting

    def _pump(self) -> None:
        """Start what has a slot. A job that ends at once comes back here: it leaves that to the round under way."""
        if self._pumping or self._stopping:
            return
        self._pumping = True
        try:
            self._start_some()
        finally:
            self._pumping = False
        self._want_more()
        if self._ahead:
            self._watch.begin()

    def _start_some(self) -> None:
        running, ahead, slots = self.running, self._ahead, self._slots
        until = self._loop.time() + LONGEST_TURN
        started = 0
        while not self._stopping:
            if self._sole is not None:
                self._start_alone(self._sole)
                return
            if not ahead or len(running) >= slots:
                return
            self._begin_unless_told(ahead.popleft())
            started += 1
            if started % _LOOK_EVERY == 0 and self._loop.time() > until:
                self._loop.call_soon(self._pump)
                return

    def _start_alone(self, sole: Attempt) -> None:
        """Start a job that may kill its process when nothing else could die with it.

        That is: when no other claim is held or under way. What has ended, or was given back, is held until that is
        written, and then this is called again.
        """
        if sole in self.running:
            return
        self._release_all()
        if sole.reason is None:
            if len(self.held) == 1 and not self._asked:
                self._begin(sole)
            return
        self._sole = None
        self._begin_unless_told(sole)
        self._full = False
        self._bell.ring()

    def _written(self) -> None:
        if self._sole is not None:
            self._pump()
        elif self._piled and len(self._settlements) <= self._most_unsettled:
            self._bell.ring()

    def _begin_unless_told(self, attempt: Attempt) -> None:
        """Start an attempt, or settle one that was told to stop while it waited here."""
        if attempt.reason is None:
            self._begin(attempt)
        elif attempt.reason == "cancel":
            self._settlements.add(attempt, Stopped(CANCELLED_ON_REQUEST))
        else:
            self._release(attempt)

    def _begin(self, attempt: Attempt) -> None:
        now = self._clock.monotonic()
        handler = attempt.handler
        attempt.started_at = now
        attempt.counts = self._tally.begin(attempt.job, now - attempt.claimed_at)
        if handler.timeout_seconds is not None:
            attempt.renew_until = now + handler.timeout_seconds + attempt.lease
        # first: where tasks begin at once, its code may hold up the event loop before this goes on
        self.running.add(attempt)
        self._start(attempt)
        # one whose code waited for nothing has ended by now
        if not attempt.over and handler.timeout is not None:
            self._deadlines.add(attempt, handler.timeout, now)

    # giving back

    def waiting(self) -> list[Attempt]:
        """Return what is not begun: in line for a slot, or behind a claim that is under way."""
        return [attempt for line in (self._ahead, *self._behind) for attempt in line]

    def _release_all(self) -> None:
        self.release_those(lambda _: True)

    def release_those(self, which: Callable[[Attempt], bool]) -> None:
        """Give back what is not begun, those that are meant."""
        for line in (self._ahead, *self._behind):
            waiting = list(line)
            line.clear()
            for attempt in waiting:
                if which(attempt):
                    self._release(attempt)
                else:
                    line.append(attempt)

    def _release(self, attempt: Attempt) -> None:
        self._settlements.add(attempt, GivenBack(started=False))


def may_be_poison(job: Job) -> bool:
    """Whether a job has one attempt left and took its process along the last time, for all that is known."""
    return 1 < job.attempt == job.max_attempts and job.last_error == LEASE_EXPIRED.summary
