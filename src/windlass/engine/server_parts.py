"""Server parts: everything that one run of a server consists of, made and connected in one place."""

from collections.abc import Mapping
from typing import Any, Protocol

from windlass.core.errors import Fenced
from windlass.core.looks import ServerRecord
from windlass.core.requests import Rescued
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.claim_loop import ClaimLoop
from windlass.engine.claim_plan import plan_of
from windlass.engine.execution import Execution
from windlass.engine.executors.processes import Processes
from windlass.engine.executors.threads import Threads
from windlass.engine.held_claims import HeldClaims
from windlass.engine.hooks import Hooks
from windlass.engine.kept_log import least_of
from windlass.engine.notes import Notes
from windlass.engine.ready import ready_handlers
from windlass.engine.renewals import Renewals, RenewalThread
from windlass.engine.served import Around, Served
from windlass.engine.server_services import ServerServices
from windlass.engine.settlement_writer import SettlementWriter
from windlass.engine.slots import Slots
from windlass.engine.tally import Tally


class ServerEvents(Protocol):
    """The run, as its parts report to it."""

    def describe(self) -> ServerRecord:
        """Return what the store is to know of the server now."""
        ...

    def on_rescued(self, rescued: list[Rescued]) -> None:
        """Take the jobs that a service has rescued."""
        ...

    def on_store_error(self, error: Exception, /) -> None:
        """Take an error of a claim, or `Fenced` of any part, on the event loop."""
        ...

    def on_fenced_in_thread(self, error: Fenced) -> None:
        """Take `Fenced` from the thread that renews."""
        ...


class ServerParts:
    """The wiring of one server run: each part is given the parts that it calls.

    Claims go from the claim loop to the slots, which run them; ends go from the slots to the settlement writer. The
    stopper ends what should end before it does by itself.
    """

    def __init__(
        self, around: Around, app: Served, provided: Mapping[type, Any], run: ServerEvents, *, counts: Tally
    ) -> None:
        """Make all parts; none of them begins. `provided` is what the lifespan of the app gave for its handlers."""
        config, clock, _, spawn, client, server_id = around
        store = client.store
        self.counts = counts
        self.retention = config.retention(client.settings)
        self.handlers = ready_handlers(app, provided, timeout=config.job_timeout)
        self.plan = plan_of(app, config, server_id)
        self.hooks = Hooks(app.state_change_hooks, app.dead_hooks, spawn)
        self.notes = Notes(store)
        self.held = HeldClaims()
        self.settlements = SettlementWriter(
            client,
            self.held,
            self.notes,
            retention=self.retention,
            counts=counts,
            on_committed=self.hooks.tell if self.hooks.wanted else None,
            on_fenced=run.on_store_error,
        )
        self.stopper = AttemptStopper(self.settlements, clock)
        self.threads = Threads(config.threads)
        self.processes = Processes(most=max(1, config.concurrency))
        self.slots = Slots(
            config.concurrency,
            Execution(app, threads=self.threads, processes=self.processes),
            store=store,
            settlements=self.settlements,
            stopper=self.stopper,
            counts=counts,
            clock=clock,
        )
        self.claims = ClaimLoop(
            self.plan,
            self.handlers,
            self.slots,
            services=AttemptServices(client, self.notes, self.retention, log_from=least_of(config.job_log_level)),
            hooks=self.hooks,
            poll_interval=config.poll_interval,
            on_store_error=run.on_store_error,
        )
        shortest = min((lease.total_seconds() for lease in self.plan.leases.values()), default=30.0)
        self.renewals = Renewals(self.held, self.stopper, clock, shortest=shortest)
        self.services = ServerServices(
            around,
            app.services(around),
            describe=run.describe,
            queues=self.plan.queues,
            kinds=self.handlers.by_kind,
            held=self.held,
            renewals=self.renewals,
            stopper=self.stopper,
            tally=counts,
            retention=self.retention,
            on_rescued=run.on_rescued,
            on_fenced=run.on_store_error,
        )
        self.renewal_thread: RenewalThread | None = None
        """The thread that renews, where time goes by without us."""
        if clock.goes_by_itself:
            self.renewal_thread = RenewalThread(
                self.renewals,
                store.sibling(),
                fenced=run.on_fenced_in_thread,
                failed=lambda: counts.fail("renew"),
            )
