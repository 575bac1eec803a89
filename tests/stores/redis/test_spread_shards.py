"""Queues that are spread over a Cluster of which one server is down: those of the others go on."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest

from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from tests.redis.private_cluster import PrivateCluster
from tests.stores.redis.inside import idle_wires
from windlass import App, Server, ServerConfig
from windlass.connect import open_store
from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.requests import CancelOutcome, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import HOUR, MINUTE, SECOND, a_job, a_schedule, claim_one, settlement, wanting

TIMEOUT: Final = 10.0
"""Seconds that a call has unless the URL says otherwise: a server that is down must not cost as much."""
PATIENCE: Final = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    with PrivateCluster(conf={"cluster-require-full-coverage": "no"}) as cluster:
        yield cluster


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def prefix() -> str:
    return new_prefix()


@asynccontextmanager
async def opened(url: str, clock: FakeClock) -> AsyncGenerator[Store]:
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def store(cluster: PrivateCluster, prefix: str, clock: FakeClock) -> AsyncIterator[Store]:
    async with opened(with_options(cluster.url, f"prefix={prefix}&spread=queues"), clock) as store:
        yield store


@pytest.fixture
async def hurried(cluster: PrivateCluster, prefix: str, clock: FakeClock) -> AsyncIterator[Store]:
    """One whose calls have little time, for those that are repeated until there is none left."""
    async with opened(with_options(cluster.url, f"prefix={prefix}&spread=queues&timeout=2"), clock) as hurried:
        yield hurried


@pytest.fixture
def places(cluster: PrivateCluster, prefix: str) -> dict[str, PrivateRedis]:
    """Queues, and the server that each is on."""
    names = [f"q{number}" for number in range(100)]
    return {name: cluster.master_of(cluster.slot_of(f"{{{prefix}|{name}}}|")) for name in names}


@pytest.fixture
def up(cluster: PrivateCluster, prefix: str, places: dict[str, PrivateRedis]) -> str:
    """A queue on the server that has what belongs to no queue."""
    home = cluster.master_of(cluster.slot_of(f"{{{prefix}}}|"))
    return next(queue for queue, server in places.items() if server is home)


@pytest.fixture
def down(cluster: PrivateCluster, up: str, places: dict[str, PrivateRedis]) -> Iterator[str]:
    """A queue on another server, which is started again in the end."""
    queue = next(queue for queue, server in places.items() if server is not places[up])
    yield queue
    if not places[queue].runs:
        cluster.join(places[queue])


async def lose(server: PrivateRedis, store: Store) -> None:
    """Kill a server, and return when the store has seen its connections to it close."""
    await asyncio.to_thread(server.kill)
    async with asyncio.timeout(PATIENCE):
        while not any(wire.closed for wire in idle_wires(store)):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


async def test_what_was_claimed_is_given_although_another_queue_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue), a_job(queue)])
    await lose(places[down], store)

    one = (await store.claim(wanting(up, down, limit=3))).jobs
    with pytest.raises(StoreUnavailable):
        await store.claim(wanting(up, down, limit=3))

    assert [claim.job.queue for claim in one] == [up, up]


async def test_a_queue_that_does_not_answer_is_passed_by(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue)])
    await lose(places[down], store)

    assert [claim.job.queue for claim in (await store.claim(wanting(down, up, limit=3))).jobs] == [up]


async def test_claims_of_one_queue_are_renewed_and_settled_while_another_does_not_answer(
    hurried: Store, places: dict[str, PrivateRedis], clock: FakeClock, up: str, down: str
) -> None:
    store = hurried
    for queue in (up, down):
        await store.enqueue([a_job(queue)])
    lost, held = await claim_one(store, down), await claim_one(store, up)
    await lose(places[down], store)

    with pytest.raises(StoreUnavailable):
        await store.renew([(claim.job.id, claim.token) for claim in (lost, held)], HOUR)
    clock.advance(MINUTE)
    with pytest.raises(StoreUnavailable):
        await store.rescue(RescueRequest(), KEEP_ALL)
    assert len(await store.renew([(held.job.id, held.token)], HOUR)) == 1
    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        await store.settle([settlement(lost), settlement(held)])

    [row] = await store.stats(up)
    assert (row.running, row.totals.rescued, row.totals.succeeded) == (0, 0, 1)


async def test_claims_of_one_queue_are_rescued_while_another_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], clock: FakeClock, up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue, delay=SECOND), a_job(queue)])
        await claim_one(store, queue)
    clock.advance(MINUTE)
    await lose(places[down], store)

    assert await store.promote(limit=10) == 1
    [rescued] = await store.rescue(RescueRequest(), KEEP_ALL)

    assert rescued.state is State.PENDING
    [row] = await store.stats(up)
    assert (row.pending, row.totals.rescued) == (2, 1)


async def test_claims_are_rescued_while_the_server_that_has_the_names_of_all_queues_does_not_answer(
    cluster: PrivateCluster, hurried: Store, places: dict[str, PrivateRedis], clock: FakeClock, *, up: str, down: str
) -> None:
    away, there = up, down
    for queue in (away, there):
        await hurried.enqueue([a_job(queue, delay=SECOND), a_job(queue)])
        await claim_one(hurried, queue)
    clock.advance(MINUTE)
    await lose(places[away], hurried)

    try:
        promoted = await hurried.promote(limit=10)
        rescued = await hurried.rescue(RescueRequest(), KEEP_ALL)
    finally:
        cluster.join(places[away])

    assert (promoted, [one.state for one in rescued]) == (1, [State.PENDING])
    [row] = await hurried.stats(there)
    assert (row.pending, row.totals.rescued) == (2, 1)


@pytest.fixture
def several_down(places: dict[str, PrivateRedis], down: str) -> list[str]:
    """Some queues on the same server as the one that goes down."""
    return [queue for queue, server in places.items() if server is places[down]][:6]


async def test_the_queues_of_a_server_that_is_down_cost_a_round_its_patience_once(
    store: Store, places: dict[str, PrivateRedis], clock: FakeClock, up: str, several_down: list[str]
) -> None:
    for queue in (*several_down, up):
        await store.enqueue([a_job(queue, delay=SECOND)])
    clock.advance(MINUTE)
    await lose(places[several_down[0]], store)
    began = time.monotonic()

    promoted = await store.promote(limit=10)
    claims = (await store.claim(wanting(*several_down, up, limit=3))).jobs
    with pytest.raises(StoreUnavailable, match="passed by"):
        await store.rescue(RescueRequest(), KEEP_ALL)

    assert (promoted, [claim.job.queue for claim in claims]) == (1, [up])
    assert time.monotonic() - began < TIMEOUT


async def test_looks_of_servers_tell_what_is_known_while_a_queue_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], clock: FakeClock, up: str, down: str
) -> None:
    here, there = a_job(up, delay=MINUTE), a_job(down)
    for job in (here, there):
        await store.enqueue([job])
        await store.write_schedule(replace(a_schedule(f"of {job.queue}", clock.now()), queue=job.queue), expected=None)
    await lose(places[down], store)
    began = time.monotonic()

    assert [schedule.id for schedule in (await store.due_schedules([], limit=10)).due] == [f"of {up}"]
    assert await store.due_in([up, down]) == MINUTE
    await store.set_paused(up, paused=True)
    assert await store.paused([down, up]) == [up]
    assert [None if job is None else job.id for job in await store.get([here.id])] == [here.id]
    assert (await store.glance([here.id])).keys() == {here.id}
    assert [one.id for one in (await store.schedules([f"of {up}"])).schedules] == [f"of {up}"]
    assert await store.cancel([here.id], KEEP_ALL) == [CancelOutcome.REMOVED]
    assert time.monotonic() - began < TIMEOUT


async def test_what_may_be_in_a_queue_that_does_not_answer_is_not_said_to_be_gone(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    here, there = a_job(up), a_job(down)
    for job in (here, there):
        await store.enqueue([job])
    await lose(places[down], store)

    for look in (
        lambda: store.get([here.id, there.id]),
        lambda: store.glance([here.id, there.id]),
        lambda: store.delete([there.id]),
        store.stats,
        store.schedules,
    ):
        with pytest.raises(StoreUnavailable):
            await look()


async def test_a_renewal_tells_of_flags_and_losses_while_another_queue_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, up, up, down):
        await store.enqueue([a_job(queue)])
    there, flagged, lost, held = [await claim_one(store, queue) for queue in (down, up, up, up)]
    await store.cancel([flagged.job.id], KEEP_ALL)
    await store.settle([settlement(lost)])
    await lose(places[down], store)
    claims = [(claim.job.id, claim.token) for claim in (there, flagged, lost, held)]

    unknown, *known = await store.renew(claims, HOUR)

    assert unknown is not None
    assert [None if one is None else one.cancel_requested for one in known] == [True, None, False]
    with pytest.raises(StoreUnavailable):
        await store.renew([claims[0], claims[3]], HOUR)


async def test_schedules_and_workers_of_the_other_servers_go_on(
    cluster: PrivateCluster, prefix: str, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    ran = asyncio.Event()
    app = App(with_options(cluster.url, f"prefix={prefix}&spread=queues"))

    @app.job(queue=up)
    async def on_time() -> None:
        ran.set()

    @app.job(queue=down)
    async def away() -> None:
        pass

    async with app, Server(app, ServerConfig(queues=[down, up])):
        for name, handle in {"up": on_time, "down": away}.items():
            await app.client.schedules.put(name, SECOND, handle.call())
        await asyncio.wait_for(ran.wait(), PATIENCE)
        await asyncio.to_thread(places[down].kill)
        for _ in range(2):
            ran.clear()
            await asyncio.wait_for(ran.wait(), TIMEOUT)
        await asyncio.to_thread(cluster.join, places[down])


async def test_a_server_that_forgets_is_refused_before_the_first_job_of_a_queue_there(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    places[down].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreUnavailable, match=r"forgets jobs.*evicting=allowed") as told:
            await store.enqueue([a_job(down)])
        await store.enqueue([a_job(up)])
    finally:
        places[down].ask("CONFIG", "SET", "maxmemory-policy", "noeviction")

    assert not told.value.retryable
    assert (await store.enqueue([a_job(down)]))[0].created


async def test_the_doctor_looks_at_every_server_that_has_queues(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue)])
    places[down].ask("CONFIG", "SET", "maxmemory", "1mb")
    try:
        findings = {finding.name: finding for finding in await store.check()}
    finally:
        places[down].ask("CONFIG", "SET", "maxmemory", "0")

    assert findings["server"].message.endswith("role master, one of 2 that have queues")
    assert findings["memory"].level == "warning"
    assert findings["memory"].message.startswith(f"127.0.0.1:{places[down].port}: ")
