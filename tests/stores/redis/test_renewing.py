"""Claims that are renewed and noted beside one whose job is damaged: that one counts as lost."""

from collections.abc import Sequence
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.stores.redis.calls import MINUTE, wanting
from tests.stores.redis.damage import inflict
from windlass.core.job import Claim, Note, Progress
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job

WAYS: Final = ["key of another type", "claim", "head", "empty head", "short head"]


async def three_claims(store: Store) -> Sequence[Claim]:
    await store.enqueue([a_job("q") for _ in range(3)])
    return (await store.claim(wanting("q", limit=3))).jobs


@pytest.mark.parametrize("what", WAYS)
async def test_claims_are_renewed_beside_that_of_a_damaged_job(url: str, store: Store, what: str) -> None:
    claims = await three_claims(store)
    inflict(url, claims[1].job.id, what)

    renewed = await store.renew([(claim.job.id, claim.token) for claim in claims], 5 * MINUTE)

    assert [one is not None for one in renewed] == [True, False, True]
    until = max(one.lease_expires_at for one in renewed if one is not None)
    [server] = servers_of(url)
    leases = [float(ask(server, "ZSCORE", f"{{{prefix_of(url)}}}|leased|q", claim.job.id)) / 1e6 for claim in claims]
    assert [until.timestamp() - lease < 1 for lease in leases] == [True, False, True]


@pytest.mark.parametrize("what", WAYS)
async def test_notes_are_written_beside_that_of_a_damaged_job(url: str, store: Store, what: str) -> None:
    claims = await three_claims(store)
    inflict(url, claims[1].job.id, what)

    noted = await store.note([Note(claim.job.id, claim.token, Progress(1, 2), [("info", "x")]) for claim in claims])

    assert noted == [True, False, True]
    jobs = await store.get([claims[0].job.id, claims[2].job.id])
    assert [(job.progress, len(job.log)) for job in jobs if job is not None] == [(Progress(1, 2), 1)] * 2


async def test_of_a_note_whose_log_is_damaged_nothing_is_written(url: str, store: Store) -> None:
    claims = await three_claims(store)
    [server] = servers_of(url)
    keys = f"{{{prefix_of(url)}}}|"
    ask(server, "SET", f"{keys}log|{claims[1].job.id}", "text")

    noted = await store.note([Note(claim.job.id, claim.token, Progress(1, 2), [("info", "x")]) for claim in claims])

    assert noted == [True, False, True]
    assert ask(server, "HEXISTS", f"{keys}job|{claims[1].job.id}", "progress") == 0
