"""Unique keys whose holder is damaged: each stops the enqueue with that key alone, and its job ends as any other."""

from datetime import timedelta
from typing import Final, Literal

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.redis.server import new_url
from tests.stores.redis.calls import LATER, MINUTE, NOW, opened, settlement, wanting
from windlass.core.errors import StoreCorrupt
from windlass.core.job import Failure
from windlass.core.moving import Parcel
from windlass.core.requests import CancelOutcome, Changed, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Firing
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToRetry, ToSucceeded, Verdict
from windlass.testing.conformance.given import HOUR, UNKNOWN, a_job, a_schedule

DAMAGES: Final[dict[str, bytes | None]] = {
    "another type": None,
    "empty": b"",
    "cut off": b"\x93",
    "a number": b"\x07",
    "no id": b"\x93\x07\xa1d\xc2",
    "no digest": b"\x93\xa1i\xc0\xc2",
    "a text for a time": b"\x93\xa1i\xa1d\xa1t",
}
"""What a holder is then; None is a key of another type."""
NAME: Final = "queue||q|k"


class Holder:
    """Who holds a unique key, written past the store."""

    def __init__(self, url: str, name: str = NAME) -> None:
        [self._server] = servers_of(url)
        self._key = f"{{{prefix_of(url)}}}|hold|{name}"

    def damage(self, what: str) -> None:
        assert self.exists()
        ask(self._server, "DEL", self._key)
        value = DAMAGES[what]
        if value is None:
            ask(self._server, "SADD", self._key, "member")
        else:
            ask(self._server, "SET", self._key, value)

    def exists(self) -> bool:
        return bool(ask(self._server, "EXISTS", self._key))


@pytest.fixture
def holder(url: str) -> Holder:
    return Holder(url)


@pytest.mark.parametrize("what", DAMAGES)
async def test_an_enqueue_with_a_key_whose_holder_is_damaged_names_the_key(
    store: Store, holder: Holder, what: str
) -> None:
    await store.enqueue([a_job("q", unique=Unique("k"))])
    holder.damage(what)
    batch = [a_job("q"), a_job("q", unique=Unique("k")), a_job("q", unique=Unique("other"))]

    with pytest.raises(StoreCorrupt, match=r"hold\|queue\|\|q\|k ") as told:
        await store.enqueue(batch)

    assert (told.value.job_id, told.value.retryable) == (None, False)
    assert await store.get([job.id for job in batch]) == [None] * 3
    assert [each.created for each in await store.enqueue([batch[0], batch[2]])] == [True, True]


async def test_a_settlement_and_a_schedule_that_enqueue_with_a_damaged_key_are_told_alone(
    store: Store, holder: Holder
) -> None:
    await store.enqueue([a_job("q", unique=Unique("k")), a_job("r"), a_job("r")])
    claims = (await store.claim(wanting("r", limit=2))).jobs
    holder.damage("another type")
    revision = await store.write_schedule(a_schedule("s", NOW), expected=None)
    assert revision is not None
    firing = Firing("s", revision, (a_job("q", unique=Unique("k")),), None, LATER)

    first, second = await store.settle(
        [settlement(claims[0], then=[a_job("q", unique=Unique("k"))]), settlement(claims[1])]
    )
    with pytest.raises(StoreCorrupt, match=r"hold\|queue"):
        await store.fire(firing)

    assert isinstance(first, StoreCorrupt)
    assert NAME in str(first)
    assert second is Settled.DONE
    [left] = await store.get([claims[0].job.id])
    assert left is not None
    assert left.state is State.RUNNING


Until = Literal["claimed", "finished"]


@pytest.mark.parametrize("what", ["another type", "cut off"])
@pytest.mark.parametrize("until", ["claimed", "finished"])
async def test_a_claim_gives_a_job_whose_key_has_a_damaged_holder(
    store: Store, holder: Holder, what: str, until: Until
) -> None:
    jobs = [a_job("q"), a_job("q", unique=Unique("k", until=until)), a_job("q")]
    await store.enqueue(jobs)
    holder.damage(what)

    claims = (await store.claim(wanting("q", limit=9))).jobs

    assert [claim.job.id for claim in claims] == [job.id for job in jobs]
    assert holder.exists() == (until == "finished")


@pytest.mark.parametrize("what", ["another type", "cut off"])
@pytest.mark.parametrize("verdict", [ToSucceeded(), ToSucceeded(b"1", "json"), ToDead(Failure("no"))], ids=str)
async def test_the_end_of_its_job_frees_a_key_whose_holder_is_damaged(
    store: Store, holder: Holder, what: str, verdict: Verdict
) -> None:
    await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    [claim] = (await store.claim(wanting("q"))).jobs
    holder.damage(what)

    assert await store.settle([settlement(claim, verdict, keep=True)]) == [Settled.DONE]

    assert not holder.exists()
    [again] = await store.enqueue([a_job("q", unique=Unique("k"))])
    assert again.created


@pytest.mark.parametrize("verdict", [ToReleased(), ToRetry(MINUTE, Failure("no"))], ids=str)
async def test_a_job_whose_key_has_a_damaged_holder_waits_again(store: Store, holder: Holder, verdict: Verdict) -> None:
    job = a_job("q", unique=Unique("k", until="finished"))
    await store.enqueue([job])
    [claim] = (await store.claim(wanting("q"))).jobs
    holder.damage("another type")

    assert await store.settle([settlement(claim, verdict)]) == [Settled.DONE]
    assert await store.cancel([job.id], KEEP_ALL) == [CancelOutcome.REMOVED]
    assert not holder.exists()


async def test_a_job_that_has_freed_its_key_leaves_the_damaged_holder_of_another(store: Store, holder: Holder) -> None:
    await store.enqueue([a_job("q", unique=Unique("k", until="claimed"))])
    [claim] = (await store.claim(wanting("q"))).jobs
    await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    holder.damage("another type")

    assert await store.settle([settlement(claim, keep=True)]) == [Settled.DONE]

    assert holder.exists()


@pytest.mark.parametrize("max_attempts, end", [(1, State.DEAD), (2, State.PENDING)])
async def test_a_rescue_takes_back_a_job_whose_key_has_a_damaged_holder(
    store: Store, holder: Holder, max_attempts: int, end: State
) -> None:
    job = a_job("q", max_attempts=max_attempts, unique=Unique("k", until="finished"))
    await store.enqueue([job])
    await store.claim(wanting("q", lease=timedelta(0)))
    holder.damage("another type")

    [rescued] = await store.rescue(RescueRequest(), KEEP_ALL)

    assert (rescued.id, rescued.state) == (job.id, end)
    [found] = await store.get([job.id])
    assert found is not None
    assert (found.damage, [each.outcome for each in found.history]) == (None, ["rescued"])
    assert holder.exists() == (end is State.PENDING)


async def test_a_retry_of_a_job_whose_key_another_has_is_refused_for_it_alone(store: Store, holder: Holder) -> None:
    jobs = [a_job("q", unique=Unique("k", until="finished")), a_job("q")]
    await store.enqueue(jobs)
    await store.cancel([job.id for job in jobs], KEEP_ALL)
    await store.enqueue([a_job("q", unique=Unique("k"))])
    holder.damage("another type")

    with pytest.raises(StoreCorrupt, match=r"hold\|queue") as told:
        await store.retry([job.id for job in jobs])

    assert told.value.job_id == jobs[0].id
    found = await store.get([job.id for job in jobs])
    assert [job and job.state for job in found] == [State.CANCELLED, State.PENDING]
    assert await store.delete([jobs[0].id]) == [Changed.DONE]


async def test_a_damaged_timed_key_is_left_out_of_a_move_and_logged_once(
    store: Store, holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    await store.enqueue([a_job("q", unique=Unique(name, until=HOUR)) for name in "akz"])
    before = await store.timed_keys(limit=10)
    holder.damage("cut off")

    keys = [await store.timed_keys(limit=10) for _ in range(2)]

    assert [sorted(key.name for key in some) for some in keys] == [["queue||q|a", "queue||q|z"]] * 2
    assert caplog.text.count(f"hold|{NAME} cannot be unpacked") == 1

    # here it is as damaged for what comes
    caplog.clear()
    holder.damage("another type")
    await store.take_keys([key._replace(job_id=UNKNOWN) for key in before])
    await store.take_keys([before[0]._replace(name="queue||q|new", job_id=UNKNOWN)])
    assert caplog.text.count(f"hold|{NAME} is not a text") == 1
    assert len(await store.timed_keys(limit=10)) == 3


@pytest.mark.parametrize("until", ["claimed", "finished", HOUR])
async def test_a_job_whose_key_has_a_damaged_holder_moves(
    store: Store, holder: Holder, until: Until | timedelta
) -> None:
    jobs = [a_job("q"), a_job("q", unique=Unique("k", until=until)), a_job("q")]
    await store.enqueue(jobs)
    holder.damage("another type")

    packed = await store.pack("q", limit=9)

    assert [job.id for job in packed.jobs] == [job.id for job in jobs]
    # how long time would have held it is not known any more
    assert [(key.name, key.job_id) for key in packed.keys] == ([] if until == HOUR else [(NAME, jobs[1].id)])
    with new_url() as other:
        async with opened(other) as target:
            assert await target.unpack(Parcel("move", "q", 1, packed))
            [again] = await target.enqueue([a_job("q", unique=Unique("k"))])
            assert again.created == (until == HOUR)
    assert await store.let_go(jobs=[job.id for job in jobs])
    assert holder.exists() == (until == HOUR)


async def test_a_parcel_comes_in_beside_a_damaged_holder(
    url: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [a_job("q"), a_job("q", unique=Unique("parcel")), a_job("q")]
    with new_url() as other:
        async with opened(other) as source:
            await source.enqueue(jobs)
            packed = await source.pack("q", limit=9)
    await store.enqueue([a_job("q", unique=Unique("parcel"))])
    Holder(url, "queue||q|parcel").damage("another type")

    assert await store.unpack(Parcel("move", "q", 1, packed))

    found = await store.get([job.id for job in jobs])
    assert [job and job.state for job in found] == [State.PENDING] * 3
    assert "hold|queue||q|parcel is not a text" in caplog.text
    assert len((await store.claim(wanting("q", limit=9))).jobs) == 4
