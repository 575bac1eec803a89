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
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.conformance.given import a_job

SECOND: Final = timedelta(seconds=1)
FAILURE: Final = Failure("no")
VERDICTS: Final[dict[str, Verdict]] = {
    "success": ToSucceeded(),
    "result": ToSucceeded(b"result", "raw"),
    "dead": ToDead(FAILURE),
    "snooze": ToSnoozed(SECOND),
    "retry": ToRetry(SECOND, FAILURE),
    "release": ToReleased(),
}
CASES: Final = [
    *((name, what) for name in VERDICTS for what in ("job", "head", "short head", "hold")),
    # only what a verdict writes must be sound
    *((name, "holder") for name in ("success", "result", "dead", "release")),
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

    def of_its_unique_key(self) -> None:
        [key] = ask(self._server, "KEYS", f"{self._keys}hold|*")
        ask(self._server, "DEL", key)
        ask(self._server, "SADD", key, "member")

    def inflicted(self, what: str) -> None:
        match what:
            case "job":
                self.of_another_type("job")
            case "history":
                self.of_another_type("history")
            case "holder":
                self.of_its_unique_key()
            case "short head":
                self.of_a_field("head", "\x01\x01")
            case _:
                self.of_a_field(what, "\x91")

    def left(self) -> list[object]:
        """Return what the job's own keys hold."""
        return [ask(self._server, "DUMP", f"{self._keys}{family}|{self._id}") for family in ("job", "history")]


async def five_claims(store: Store) -> list[Claim]:
    await store.enqueue([a_job("q", max_attempts=9) for _ in range(2)])
    await store.enqueue([a_job("q", max_attempts=9, unique=Unique("k", until="finished"))])
    await store.enqueue([a_job("q", max_attempts=9) for _ in range(2)])
    return await store.claim(wanting("q", limit=5))


def is_told_alone(results: Sequence[SettleResult], damaged: JobId) -> bool:
    [*before, told, third, fourth] = results
    assert [*before, third, fourth] == [Settled.DONE] * 4
    assert isinstance(told, StoreCorrupt)
    assert (told.job_id, told.retryable) == (damaged, False)
    return f"job {damaged} cannot be settled" in str(told)


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
    totals = stats.totals
    assert (totals.succeeded + totals.dead + totals.retried) in {0, 4}


async def test_a_settlement_of_a_damaged_job_is_told_the_same_when_it_is_repeated(url: str, store: Store) -> None:
    claims = await five_claims(store)
    Damage(url, claims[2].job.id).inflicted("job")
    ends = [settlement(claim) for claim in claims]

    for _ in range(2):
        assert is_told_alone(await store.settle(ends, request_id="r"), claims[2].job.id)


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
    return not isinstance(error, StoreCorrupt) and "no permissions" in str(error.__cause__)
