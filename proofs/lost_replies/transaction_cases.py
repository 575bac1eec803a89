"""Handlers' transactions whose reply to the commit gets lost: what was committed is a success, kept or gone."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from proofs.lost_replies.cases import GONE, Case
from proofs.lost_replies.lossy import Bench
from windlass import Claim
from windlass.core.job import Job, PreparedJob, Token
from windlass.engine.claim_transaction import SettlingTransaction

HOUR: Final = timedelta(hours=1)


@dataclass
class Held:
    """A claim as an attempt holds it."""

    job: Job
    token: Token
    settled: bool = False
    in_doubt: bool = False
    next_jobs: list[PreparedJob] | None = None
    kv_writes: dict[bytes, bytes | None] | None = None


async def transaction(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    await _committed(bench, claim)
    bench.right("job", bench.state(claim.job.id), ("succeeded", 1, 1))


async def transaction_and_forget(bench: Bench) -> None:
    claim = await bench.a_claim(GONE)
    await _committed(bench, claim)
    bench.right("job", bench.state(claim.job.id), None)


async def transaction_lost_twice(bench: Bench) -> None:
    claim = await bench.a_claim(bench.new_name())
    await _committed(bench, claim, twice=True)
    bench.right("job", bench.state(claim.job.id), ("succeeded", 1, 1))


async def transaction_and_forget_lost_twice(bench: Bench) -> None:
    claim = await bench.a_claim(GONE)
    await _committed(bench, claim, twice=True)
    bench.right("job", bench.state(claim.job.id), None)


async def _committed(bench: Bench, claim: Claim, *, twice: bool = False) -> None:
    """Settle a claim in a transaction that writes beside it; the reply to its commit is lost."""
    held = Held(claim.job, claim.token)
    settling = SettlingTransaction(bench.client, held, None, loop=asyncio.get_running_loop(), warn_after=HOUR)
    bench.succeeded += 1
    async with bench.losing(twice=twice), settling as connection:
        await connection.execute(
            "insert into windlass_kv (key, value) values ($1, $2)", claim.job.id.encode(), b"written"
        )
    bench.holds("settled", held.settled)
    bench.right("effect", await bench.client.kv.get(claim.job.id), b"written")


TRANSACTIONS: Final[tuple[Case, ...]] = (
    transaction,
    transaction_and_forget,
    transaction_lost_twice,
    transaction_and_forget_lost_twice,
)
"""For stores that have transactions."""
