"""Queues that are spread over a Cluster of which one server is down: those of the others go on."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from tests.redis.private_cluster import PrivateCluster
from windlass.connect import open_store
from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import HOUR, MINUTE, SECOND, a_job, claim_one, settlement, wanting


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


@pytest.fixture
async def store(cluster: PrivateCluster, prefix: str, clock: FakeClock) -> AsyncIterator[Store]:
    url = with_options(cluster.url, f"prefix={prefix}&spread=queues&timeout=0.5")
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    yield store
    await store.close()


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


async def test_what_was_claimed_is_given_although_another_queue_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue), a_job(queue)])
    places[down].kill()

    one = await store.claim(wanting(up, down, limit=3))
    with pytest.raises(StoreUnavailable):
        await store.claim(wanting(up, down, limit=3))

    assert [claim.job.queue for claim in one] == [up, up]


async def test_a_queue_that_does_not_answer_is_passed_by(
    store: Store, places: dict[str, PrivateRedis], up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue)])
    places[down].kill()

    assert [claim.job.queue for claim in await store.claim(wanting(down, up, limit=3))] == [up]


async def test_claims_of_one_queue_are_renewed_and_settled_while_another_does_not_answer(
    store: Store, places: dict[str, PrivateRedis], clock: FakeClock, up: str, down: str
) -> None:
    for queue in (up, down):
        await store.enqueue([a_job(queue)])
    lost, held = await claim_one(store, down), await claim_one(store, up)
    places[down].kill()

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
    places[down].kill()

    assert await store.promote(limit=10) == 1
    [rescued] = await store.rescue(RescueRequest(), KEEP_ALL)

    assert rescued.state is State.PENDING
    [row] = await store.stats(up)
    assert (row.pending, row.totals.rescued) == (2, 1)


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
