import asyncio
import logging
import threading
from datetime import timedelta

import pytest

from proofs.children import eventually
from tests.engine.given import LEASE, a_handler, an_attempt, settlements_of
from windlass.client.client import Client
from windlass.connect import open_store
from windlass.core.errors import StoreUnavailable
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.renewals import Renewals, RenewalThread, stacks
from windlass.testing import FakeClock


def renewals_of(client: Client, *attempts: Attempt) -> Renewals:
    settlements = settlements_of(client)
    settlements.held.add(attempts)
    stopper = AttemptStopper(settlements, client.clock)
    return Renewals(settlements.held, stopper, client.clock, shortest=LEASE)


async def lease_of(client: Client, attempt: Attempt) -> float:
    job = await client.get(attempt.job.id)
    assert job is not None
    assert job.lease_expires_at is not None
    return (job.lease_expires_at - client.clock.now()).total_seconds()


async def test_a_claim_is_renewed_each_third_of_its_lease(client: Client, clock: FakeClock) -> None:
    attempt = await an_attempt(client)
    renewals = renewals_of(client, attempt)

    clock.advance(9)
    assert await renewals.round(client.store) == pytest.approx(1)
    assert await lease_of(client, attempt) == 21
    clock.advance(1)
    assert await renewals.round(client.store) == 10

    assert await lease_of(client, attempt) == 30


async def test_two_rounds_may_fail_before_a_claim_is_lost(client: Client, clock: FakeClock) -> None:
    attempt = await an_attempt(client)
    renewals = renewals_of(client, attempt)

    clock.advance(29.5)
    await renewals.round(client.store)

    assert await lease_of(client, attempt) == 30
    assert await client.rescue() == 0


async def test_who_lost_its_job_or_was_asked_to_stop_is_told(client: Client, clock: FakeClock) -> None:
    lost = await an_attempt(client)
    await client.rescue(force=True)
    settled = await an_attempt(client, enqueue=False)
    await client.rescue(force=True)
    settled.settled = True
    flagged, quiet = await an_attempt(client), await an_attempt(client)
    await client.cancel(flagged.job.id)
    renewals = renewals_of(client, lost, settled, flagged, quiet)

    clock.advance(10)
    await renewals.round(client.store)
    await asyncio.sleep(0)

    reasons = [attempt.reason for attempt in (lost, settled, flagged, quiet)]
    assert reasons == ["claim_lost", None, "cancel", None]


async def test_who_does_not_know_yet_whether_it_has_settled_its_job_has_not_lost_it(
    client: Client, clock: FakeClock
) -> None:
    attempt = await an_attempt(client)
    await client.rescue(force=True)
    attempt.in_doubt = True
    renewals = renewals_of(client, attempt)

    clock.advance(10)
    await renewals.round(client.store)
    await asyncio.sleep(0)

    assert attempt.reason is None


async def test_nothing_is_renewed_beyond_its_timeout_and_a_lease(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await an_attempt(client, a_handler(timeout=timedelta(seconds=1)))
    attempt.renew_until = 1 + LEASE
    renewals = renewals_of(client, attempt)
    clock.advance(30)
    await renewals.round(client.store)
    assert renewals.overdue == set()

    clock.advance(10)
    with caplog.at_level(logging.CRITICAL):
        for _ in range(3):
            await renewals.round(client.store)

    assert renewals.overdue == {attempt}
    assert await lease_of(client, attempt) == 20
    assert caplog.text.count("is past its timeout of 0:00:01 and its lease") == 1


def test_the_stacks_tell_what_every_thread_does() -> None:
    go, begun = threading.Event(), threading.Event()

    def wait_for_the_test() -> None:
        begun.set()
        go.wait(10)

    thread = threading.Thread(target=wait_for_the_test)
    thread.start()
    begun.wait(10)

    told = stacks()

    go.set()
    thread.join()
    assert "wait_for_the_test" in told
    assert "test_the_stacks_tell_what_every_thread_does" in told


class Failing:
    """A store that cannot be opened."""

    async def open(self) -> None:
        raise StoreUnavailable("no such file")


async def test_a_start_raises_what_opening_the_store_raised(client: Client) -> None:
    thread = RenewalThread(renewals_of(client), Failing(), fenced=print)  # type: ignore[arg-type]

    with pytest.raises(StoreUnavailable, match="no such file"):
        await thread.start()
    await thread.stop(10)

    assert await asyncio.to_thread(eventually, lambda: _alive() == 0)


async def test_each_round_in_vain_is_told_of(client: Client) -> None:
    told: list[str] = []
    thread = RenewalThread(renewals_of(client), open_store("memory://"), fenced=print, failed=lambda: told.append("!"))
    vars(thread)["_renewals"].round = _failing
    await thread.start()

    found = await asyncio.to_thread(eventually, lambda: bool(told))
    await thread.stop(10)

    assert found


async def _failing(_: object) -> float:
    raise StoreUnavailable("away")


async def test_a_thread_that_is_stopped_while_it_begins_ends(client: Client) -> None:
    for _ in range(20):
        thread = RenewalThread(renewals_of(client), open_store("memory://"), fenced=print)
        starting = asyncio.create_task(thread.start())
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait((starting,))
        await thread.stop(10)

    assert await asyncio.to_thread(eventually, lambda: _alive() == 0)


def _alive() -> int:
    return sum(thread.name == "windlass-renewals" for thread in threading.enumerate())
