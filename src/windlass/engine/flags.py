"""The service that sees which running jobs were asked to stop, or were taken back."""

from collections.abc import Callable
from datetime import timedelta

from windlass.client.bell import Bell
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.looks import Glance
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import FLAGS
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.held_claims import HeldClaims
from windlass.engine.service import Service


class FlagWatch(Service):
    """Looks at all running jobs when a flag was set, and each poll interval where the store tells nobody."""

    name = "flags"

    def __init__(
        self,
        store: Store,
        held: HeldClaims,
        stopper: AttemptStopper,
        *,
        poll_interval: timedelta,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
    ) -> None:
        """End by `stopper` each attempt whose job was asked to stop, or that no longer holds its job."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._held = held
        self._stopper = stopper
        self._bell = Bell(clock)
        self._longest = timedelta(seconds=30) if store.features.misses_no_news else poll_interval
        self.interval = timedelta(0)
        self._stop_listening: Callable[[], None] | None = None

    async def tick(self) -> None:
        """Sleep until a flag is set, and look."""
        if self._stop_listening is None:
            self._stop_listening = self._store.listen((FLAGS,), self._bell.ring)
        await self._bell.wait(self._longest.total_seconds())
        self._bell.clear()
        watched = [attempt for attempt in self._held.attempts() if attempt.reason is None]
        if watched:
            seen = await self._store.glance({attempt.job.id for attempt in watched})
            for attempt in watched:
                self._tell(attempt, seen.get(attempt.job.id))

    async def leave(self) -> None:
        """Listen no more."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def _tell(self, attempt: Attempt, glance: Glance | None) -> None:
        # one that was settled during the look holds nothing any more, by its own doing
        if attempt.settled:
            return
        if glance is None or glance.state is not State.RUNNING or glance.token != attempt.token:
            self._stopper.request(attempt, "claim_lost")
        elif glance.cancel_requested:
            self._stopper.request(attempt, "cancel")
