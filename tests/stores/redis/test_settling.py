"""Settlements beside one whose job is damaged: they are done whole, and of that one nothing is."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import opened, settlement, wanting
from windlass.core.errors import StoreCorrupt, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure
from windlass.core.requests import Settled, SettleResult
from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.conformance.given import a_job

SECOND: Final = timedelta(seconds=1)
FAILURE: Final = Failure("no")
REPLACING: Final = Unique("k", on_conflict="replace")
VERDICTS: Final[dict[str, Verdict]] = {
    "success": ToSucceeded(),
    "result": ToSucceeded(b"result", "raw"),
    "dead": ToDead(FAILURE),
    "snooze": ToSnoozed(SECOND),
    "retry": ToRetry(SECOND, FAILURE),
    "release": ToReleased(),
}
COUNTED: Final[dict[str, dict[str, int]]] = {
    "success": {"succeeded": 4},
    "result": {"succeeded": 4},
    "dead": {"dead": 4},
    "snooze": {},
    "retry": {"retried": 4},
    "release": {},
}
"""What four of them add to the totals."""
CASES: Final = [
    *((name, what) for name in VERDICTS for what in ("job", "head", "short head", "short claim", "hold", "empty hold")),
    # only what a verdict writes must be sound
    *((name, "history") for name in ("dead", "snooze", "retry", "release")),
]


class Damage:
    """What is done to the keys of a job."""

    def __init__(self, url: str, job_id: JobId) -> None:
        [self._server] = servers_of(url)
        self._keys = f"{{{prefix_of(url)}}}|"
        self._id = job_id

    def of_another_type(self, family: str) -> None:
        key = f"{self._keys}{family}|{self._id}"
        ask(self._server, "DEL", key)
        ask(self._server, "SADD", key, "member")

    def of_a_field(self, field: str, value: str) -> None:
        ask(self._server, "HSET", f"{self._keys}job|{self._id}", field, value)

    def inflicted(self, what: str) -> None:
        match what:
            case "job":
                self.of_another_type("job")
            case "history":
                self.of_another_type("history")
            case "short head":
                self.of_a_field("head", "\x01\x01")
            case "text for a hold":
                self.of_a_field("hold", "\xa1x")
            case "empty hold":
                self.of_a_field("hold", "\udc90")
            case "short claim":
                # the token alone, which still holds
                claim = ask(self._server, "HGET", f"{self._keys}job|{self._id}", "claim")
                self.of_a_field("claim", claim[: 2 + ord(claim[1])])
            case _:
                self.of_a_field(what, "\x91")

    def left(self) -> list[object]:
        """Return what the job's own keys hold."""
        return [ask(self._server, "DUMP", f"{self._keys}{family}|{self._id}") for family in ("job", "history")]


async def five_claims(store: Store) -> list[Claim]:
    await store.enqueue([a_job("q", max_attempts=9) for _ in range(2)])
    await store.enqueue([a_job("q", max_attempts=9, unique=Unique("k", until="finished"))])
    await store.enqueue([a_job("q", max_attempts=9) for _ in range(2)])
    return (await store.claim(wanting("q", limit=5))).jobs


def is_told_alone(results: Sequence[SettleResult], damaged: JobId) -> bool:
    [*before, told, third, fourth] = results
    assert [*before, third, fourth] == [Settled.DONE] * 4
    assert isinstance(told, StoreCorrupt)
    assert (told.job_id, told.retryable) == (damaged, False)
    return f"job {damaged} is left as it is" in str(told)


@pytest.mark.parametrize("name, what", CASES)
async def test_other_settlements_are_done_beside_that_of_a_damaged_job(
    url: str, store: Store, name: str, what: str
) -> None:
    claims = await five_claims(store)
    damaged = Damage(url, claims[2].job.id)
    damaged.inflicted(what)
    before = damaged.left()

    results = await store.settle([settlement(claim, VERDICTS[name]) for claim in claims])

    assert is_told_alone(results, claims[2].job.id)
    assert damaged.left() == before
    [stats] = await store.stats()
    assert (stats.running, stats.succeeded + stats.dead + stats.pending + stats.scheduled) == (1, 4)
    assert stats.totals._replace(enqueued=0) == Totals(**COUNTED[name])


async def test_a_settlement_of_a_damaged_job_is_told_the_same_when_it_is_repeated(url: str, store: Store) -> None:
    claims = await five_claims(store)
    Damage(url, claims[2].job.id).inflicted("job")
    ends = [settlement(claim) for claim in claims]

    for _ in range(2):
        assert is_told_alone(await store.settle(ends, request_id="r"), claims[2].job.id)


@pytest.mark.parametrize("name", ["success", "dead"])
async def test_a_settlement_of_nothing_but_a_damaged_job_is_judged_anew_once_that_is_mended(
    url: str, store: Store, name: str
) -> None:
    claims = await five_claims(store)
    [server] = servers_of(url)
    key = f"{{{prefix_of(url)}}}|job|{claims[0].job.id}"
    head = ask(server, "HGET", key, "head")
    Damage(url, claims[0].job.id).inflicted("head")
    ends = [settlement(claims[0], VERDICTS[name])]
    [told] = await store.settle(ends, request_id="r")
    assert isinstance(told, StoreCorrupt)

    ask(server, "HSET", key, "head", head)

    assert await store.settle(ends, request_id="r") == [Settled.DONE]
    assert await store.settle(ends, request_id="r") == [Settled.DONE]


@pytest.mark.parametrize("what", ["head", "short head", "hold", "text for a hold"])
async def test_of_a_settlement_whose_next_job_would_replace_a_damaged_one_nothing_is_written(
    url: str, store: Store, what: str
) -> None:
    holder = a_job("later", unique=REPLACING)
    await store.enqueue([holder, a_job("q"), a_job("q")])
    claims = (await store.claim(wanting("q", limit=2))).jobs
    Damage(url, holder.id).inflicted(what)
    then = [a_job("later"), a_job("later", unique=REPLACING)]

    results = await store.settle([settlement(claims[0], then=then, kv={b"k": b"v"}), settlement(claims[1])])

    assert is_corrupt(results[0], holder.id)
    assert results[1] is Settled.DONE
    assert await store.get([job.id for job in then]) == [None, None]
    assert await store.kv_get([b"k"]) == [None]
    [claimed] = await store.get([claims[0].job.id])
    assert claimed is not None
    assert claimed.state is State.RUNNING


async def test_jobs_of_which_one_would_replace_a_damaged_one_are_not_enqueued(url: str, store: Store) -> None:
    holder = a_job("q", unique=REPLACING)
    await store.enqueue([holder])
    Damage(url, holder.id).inflicted("head")
    jobs = [a_job("q"), a_job("q", unique=REPLACING)]

    with pytest.raises(StoreCorrupt) as told:
        await store.enqueue(jobs)

    assert told.value.job_id == holder.id
    assert await store.get([job.id for job in jobs]) == [None, None]


@pytest.mark.parametrize("key", ["kv", "kv_keys"])
@pytest.mark.parametrize("brought_by", ["settlement", "job"])
async def test_of_a_settlement_whose_values_cannot_be_written_nothing_is(
    url: str, store: Store, key: str, brought_by: str
) -> None:
    claims = await five_claims(store)
    [server] = servers_of(url)
    ask(server, "SET", f"{{{prefix_of(url)}}}|{key}", "text")
    values: dict[bytes, bytes | None] = {b"k": b"v"}
    bringing = settlement(claims[0])
    if brought_by == "settlement":
        bringing = bringing._replace(kv=values)
    else:
        bringing = bringing._replace(then=[a_job("later", kv=values)])

    results = await store.settle([bringing, settlement(claims[1])])

    assert is_corrupt(results[0], claims[0].job.id)
    assert results[1] is Settled.DONE
    [stats] = await store.stats()
    assert (stats.running, stats.totals.succeeded) == (4, 1)


def is_corrupt(result: SettleResult, job_id: JobId) -> bool:
    return isinstance(result, StoreCorrupt) and result.job_id == job_id


async def test_what_keeps_all_jobs_from_being_written_or_given_is_no_damage_of_one() -> None:
    with PrivateRedis() as server:
        async with opened(server.url) as store:
            claims = await five_claims(store)
            await store.enqueue([a_job("q")])
            server.ask("ACL", "SETUSER", "default", "-hmget", "-hgetall")
            for end in (settlement(claims[0]), settlement(claims[1], VERDICTS["dead"])):
                with pytest.raises(WindlassError) as told:
                    await store.settle([end])
                assert _is_of_rights(told.value)

            with pytest.raises(WindlassError) as told:
                await store.claim(wanting("q"))
            assert _is_of_rights(told.value)


def _is_of_rights(error: WindlassError) -> bool:
    # told by the code of the server's error, which was caught on the way
    told = f"{error} {error.__cause__}"
    return not isinstance(error, StoreCorrupt) and "refused the user" in told and "no permissions" in told
