"""The services of one server: what goes on beside its worker, made, started and stopped together."""

from collections.abc import Callable, Collection

from windlass.core.errors import Fenced
from windlass.core.looks import ServerRecord
from windlass.core.requests import Rescued
from windlass.core.retention import Retention
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.flags import FlagWatch
from windlass.engine.heart import Heart
from windlass.engine.held_claims import HeldClaims
from windlass.engine.owner_watch import owner_watch
from windlass.engine.renewals import Renewals, RenewalService
from windlass.engine.served import Around
from windlass.engine.service import Service
from windlass.engine.services import upkeep
from windlass.engine.strangers import StrangerWatch
from windlass.engine.tally import Tally
from windlass.engine.timing_writer import TimingWriter


class ServerServices:
    """Heart, watches and upkeep, and what the app brought along."""

    def __init__(
        self,
        around: Around,
        brought: Collection[Service],
        *,
        describe: Callable[[], ServerRecord],
        queues: Collection[str],
        kinds: Collection[str],
        held: HeldClaims,
        renewals: Renewals,
        stopper: AttemptStopper,
        tally: Tally,
        retention: Retention,
        on_rescued: Callable[[list[Rescued]], None],
        on_fenced: Callable[[Fenced], None],
    ) -> None:
        """Be ready to start; `brought` are the services of the app.

        `stopper` ends what is `held` and should stop. `on_rescued` is called after each rescue, and `on_fenced` when a
        loop has ended since another process has taken the store over.
        """
        config, clock, rng, spawn, client, _ = around
        store = client.store
        self.registered = False
        """Whether the store may list the server."""
        self._heart = Heart(store, describe, clock=clock, rng=rng, spawn=spawn, interval=config.heartbeat_interval)
        self._upkeep: tuple[Service, ...] = ()
        if config.services and not store.features.served:
            self._upkeep = upkeep(
                store,
                retention,
                clock=clock,
                rng=rng,
                spawn=spawn,
                rescue_interval=config.rescue_interval,
                prune_interval=config.prune_interval,
                rescued=on_rescued,
            )
        watches = (
            TimingWriter(store, tally, clock=clock, rng=rng, spawn=spawn),
            FlagWatch(
                store,
                held,
                stopper,
                poll_interval=config.poll_interval,
                clock=clock,
                rng=rng,
                spawn=spawn,
            ),
            StrangerWatch(store, queues, kinds, dead_after=config.dead_after, clock=clock, rng=rng, spawn=spawn),
        )
        renewal: tuple[Service, ...] = ()
        if not clock.goes_by_itself:
            # else a thread renews, which sees its owner too
            renewal = (
                RenewalService(renewals, store, clock=clock, rng=rng, spawn=spawn),
                *owner_watch(store, clock=clock, rng=rng, spawn=spawn),
            )
        # whoever serves the store fires what a server is seen to declare: that is written by then
        self._first = tuple(brought) if store.features.served else ()
        last = () if store.features.served else tuple(brought)
        self._all: list[Service] = [*renewal, *self._first, self._heart, *watches, *self._upkeep, *last]
        for service in self._all:
            service.fenced = on_fenced

    async def register(self) -> None:
        """Write that the server is here, before its first claim: whoever finds a claim finds its holder. Rescue once.

        Raises what the store did.
        """
        for service in self._first:
            await service.start()
        self.registered = True
        await self._heart.tick_first()
        if self._upkeep:
            await self._upkeep[0].tick_first()

    async def start(self) -> None:
        """Start all loops."""
        for service in self._all:
            await service.start()

    def tell_of_stop(self) -> None:
        """Write at once that the server stops, and each second what it still runs."""
        self._heart.hurry()

    async def stop(self) -> None:
        """Stop all loops, in reverse, and take the server out if its heart beats."""
        for service in reversed(self._all):
            await service.stop()

    def stay_listed(self) -> None:
        """Take no leave at the stop, as a process that is killed: the loop of the heart ends with all others."""
        self._all = [service for service in self._all if service is not self._heart]
