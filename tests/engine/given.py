"""Attempts without a server."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from windlass.client.client import Client
from windlass.core.job import Claim, Job
from windlass.core.requests import ClaimRequest
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, Unset
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.held_claims import HeldClaims
from windlass.engine.notes import Notes
from windlass.engine.ready import ReadyHandler
from windlass.engine.settlement_writer import SettlementWriter, StateChange
from windlass.engine.tally import Tally
from windlass.handlers.registered import Registered, RunsIn

LEASE = 30.0


class NoArguments:
    """What a handler takes that takes nothing."""

    wants: Mapping[str, type] = {}

    def decode(self, job: Job) -> dict[str, Any]:
        assert job.id
        return {}


def a_handler(
    runs_in: RunsIn = RunsIn.LOOP,
    *,
    timeout: timedelta | None = None,
    retry: RetryRule | Unset = UNSET,
    function: Callable[..., Any] = print,
) -> ReadyHandler:
    made = Registered("work", "default", function, runs_in, NoArguments(), timeout=timeout, retry=retry)
    return ReadyHandler(made, {}, timeout=None)


async def claims(client: Client, count: int = 1, *, enqueue: bool = True, **options: Any) -> list[Claim]:  # noqa: ANN401
    """Return claims of new jobs."""
    if enqueue:
        for _ in range(count):
            await client.enqueue("default", b"", kind="work", **options)
    return (await client.store.claim(ClaimRequest(("default",), count, timedelta(seconds=LEASE), worker="a test"))).jobs


def attempt_of(
    client: Client, claim: Claim, handler: ReadyHandler | None = None, notes: Notes | None = None
) -> Attempt:
    services = AttemptServices(client, notes or Notes(client.store))
    return Attempt(claim, handler or a_handler(), LEASE, client.clock.monotonic(), services)


async def an_attempt(client: Client, handler: ReadyHandler | None = None, **options: Any) -> Attempt:  # noqa: ANN401
    [claim] = await claims(client, **options)
    return attempt_of(client, claim, handler)


def settlements_of(
    client: Client, on_committed: Callable[[list[StateChange]], None] | None = None, counts: Tally | None = None
) -> SettlementWriter:
    notes = Notes(client.store)
    return SettlementWriter(client, HeldClaims(), notes, counts=counts, on_committed=on_committed)
