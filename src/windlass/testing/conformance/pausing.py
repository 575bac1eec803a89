"""A paused queue gives no claim to anybody; everything else goes on."""

from windlass.client.client import Client
from windlass.core.commands import SetQueueSettings
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import PAUSES
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep, listening, outlast, soon
from windlass.testing.conformance.given import SECOND, claimed, found


async def test_a_paused_queue_is_not_claimed_from(open_client: OpenClient) -> None:
    one, other = await open_client(), await open_client()
    await one.enqueue("email", b"")

    await one.pause("email")

    assert await one.claim("email") is None
    assert await other.claim("email") is None
    assert (await other.stats("email")).paused


async def test_a_resumed_queue_is_claimed_from(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.pause("email")

    await client.resume("email")

    assert (await claimed(client, "email")).job.id == done.id
    assert not (await client.stats("email")).paused


async def test_other_queues_go_on(client: Client) -> None:
    await client.enqueue("email")
    await client.enqueue("sms")
    await client.pause("email")

    claims = await client.claim_many(["email", "sms"], limit=10)

    assert [claim.job.queue for claim in claims] == ["sms"]


async def test_running_jobs_of_a_paused_queue_go_on(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    await client.pause("email")

    await client.renew(claim, 60)
    await client.ack(claim)

    assert (await found(client, done.id)).state is State.SUCCEEDED


async def test_a_paused_queue_takes_jobs_and_promotes_and_rescues(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"running")
    await claimed(client, "email", lease=1)
    await client.pause("email")

    await client.enqueue("email", b"now")
    await client.enqueue("email", b"later", delay=1)
    clock.advance(SECOND)
    assert await client.promote() == 1
    assert await client.rescue() == 1

    stats = await client.stats("email")
    assert (stats.pending, stats.running, stats.paused) == (3, 0, True)
    assert await client.claim("email") is None


async def test_a_queue_may_be_paused_before_its_first_job(client: Client) -> None:
    await client.pause("email")
    await client.enqueue("email", b"")

    assert await client.queues() == ["email"]
    assert await client.claim("email") is None


async def test_a_waiting_claim_gets_nothing_from_a_paused_queue(client: Client, clock: FakeClock) -> None:
    waiting = await asleep(clock, client.claim("email", wait=5))
    await client.pause("email")
    await client.enqueue("email", b"")

    assert await outlast(clock, waiting) is None


async def test_a_waiting_claim_is_woken_by_resume(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    await client.pause("email")
    waiting = await asleep(clock, client.claim("email", wait=10))

    await client.resume("email")

    claim = await woken(waiting)
    assert claim is not None
    assert claim.job.id == done.id


async def test_pause_and_resume_may_be_repeated(client: Client) -> None:
    await client.enqueue("email", b"")
    for _ in range(2):
        await client.pause("email")
    await client.resume("email")
    await client.resume("email")

    assert await client.claim("email") is not None


async def test_the_sum_is_paused_when_every_queue_is(client: Client) -> None:
    await client.pause("a")
    await client.enqueue("b", b"")
    assert not (await client.stats()).paused

    await client.pause("b")

    assert (await client.stats()).paused


async def test_a_pause_is_news(store: Store) -> None:
    if not store.features.wakes_waiters:
        return

    with listening(store, PAUSES) as told:
        await store.set_paused("email", paused=True)

        await soon(told.wait())


async def test_which_of_some_queues_are_paused_is_told_in_their_order(store: Store) -> None:
    for queue in ("a", "b", "c", "d"):
        await store.set_paused(queue, paused=queue != "b")

    assert await store.paused(["d", "unknown", "b", "a"]) == ["d", "a"]
    assert await store.paused([]) == []


async def test_a_resumed_queue_is_paused_no_more(store: Store) -> None:
    await store.set_paused("email", paused=True)

    await store.set_paused("email", paused=False)

    assert await store.paused(["email"]) == []


async def test_the_settings_of_a_queue_say_whether_it_is_paused(store: Store) -> None:
    await store.set_paused("email", paused=True)
    await store.set_paused("sms", paused=True)
    await store.set_paused("sms", paused=False)

    found = await store.ask(GetQueueSettings(["email", "sms", "unknown"]))

    assert found["email"] == StoredSettings(paused=True)
    assert not found.get("sms", NO_SETTINGS).paused
    assert "unknown" not in found


async def test_settings_that_are_not_given_stay_as_they_are(store: Store) -> None:
    if store.features.served:
        return
    await store.set_paused("email", paused=True)

    await store.do(SetQueueSettings("email", NO_SETTINGS))

    assert await store.paused(["email"]) == ["email"]
