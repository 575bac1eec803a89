"""Settlements that come after the rescue: each is refused, and nothing of them is written."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Ledger, Tail
from proofs.readers import sqlite as reader
from proofs.report import Report
from windlass import Claim, ClaimLost, Client, NewJob
from windlass.core.requests import Settled, Settlement
from windlass.core.verdict import ToSucceeded

PROMISE = "a settlement with a stale token is refused and changes nothing, also beside valid ones"
Settle = Callable[[Client, Claim], Awaitable[object]]
VERBS: dict[str, Settle] = {
    "ack": lambda client, claim: client.ack(claim, "zombie", then=[NewJob("zombie")], kv={"zombie": b"1"}),
    "plain ack": lambda client, claim: client.ack(claim),
    "nack": lambda client, claim: client.nack(claim, "zombie"),
    "dead_letter": lambda client, claim: client.dead_letter(claim, "zombie"),
    "snooze": lambda client, claim: client.snooze(claim, 60),
    "release": lambda client, claim: client.release(claim),
    "cancel_claim": lambda client, claim: client.cancel_claim(claim, "zombie"),
    "renew": lambda client, claim: client.renew(claim, 60),
}


@dataclass(frozen=True)
class Plan:
    stale: int = 500
    """In each of the three ways: by a stopped process, in a shared commit, in one call."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("stale", PROMISE)
    _by_a_stopped_process(report, folder, plan.stale)
    asyncio.run(_in_a_shared_commit(report, folder / "shared.db", plan.stale))
    asyncio.run(_in_one_call(report, folder / "batch.db", plan.stale))
    return report


def _by_a_stopped_process(report: Report, folder: Path, count: int) -> None:
    """A process claims and is stopped past its leases; another rescues and claims; the first one goes on."""
    database, ledger = folder / "stopped.db", folder / "ledger"
    tail = Tail(ledger)
    with Children(ledger) as children:
        holder = children.start("holder", hold_and_settle, database, count)
        pid = holder.pid
        assert pid is not None
        report.needs("a process that holds claims", given=eventually(lambda: _held(tail) == count))
        os.kill(pid, signal.SIGSTOP)
        rescued = asyncio.run(_rescue_and_claim(database, count))
        before = reader.dump(database)
        os.kill(pid, signal.SIGCONT)
        failed = children.wait(120)
    after = reader.dump(database)
    tail.look()
    refused = [entry for entry in tail.entries if entry.event == "refused"]
    accepted = [entry for entry in tail.entries if entry.event == "settled"]
    report.figure("claims rescued from a stopped process", rescued)
    report.figure("its settlements refused with ClaimLost", len(refused))
    report.never("its settlements accepted", [f"{entry.note} of {entry.job}" for entry in accepted])
    report.never("rows that they changed", _differences(before, after))
    report.never("other errors in it", [entry.note for entry in tail.entries if entry.event == "error"] + failed)
    report.needs(f"{count} refused settlements of a stopped process", given=len(refused) == count == rescued)


def _held(tail: Tail) -> int:
    tail.look()
    return sum(entry.event == "effect" for entry in tail.entries)


async def hold_and_settle(ledger: Ledger, database: Path, count: int) -> None:
    async with windlass.connect(f"sqlite:///{database}") as client:
        await client.enqueue_many([NewJob("work") for _ in range(count)])
        claims = await client.claim_many("work", limit=count, lease=0)
        for claim in claims:
            ledger.write("effect", claim.job.id, delivery=claim.delivery)
        # here it is stopped; should that come late, the leases of zero still let the others in
        while not await _claimed_again(client, claims):  # noqa: ASYNC110 - nobody else tells it
            await asyncio.sleep(0.005)
        verbs = list(VERBS.items())
        for number, claim in enumerate(claims):
            verb, settle = verbs[number % len(verbs)]
            try:
                await settle(client, claim)
            except ClaimLost:
                ledger.write("refused", claim.job.id, note=verb)
            else:
                ledger.write("settled", claim.job.id, note=verb)


async def _claimed_again(client: Client, claims: list[Claim]) -> bool:
    glances = await client.store.glance([claim.job.id for claim in claims])
    return all(glances[claim.job.id].token not in (None, claim.token) for claim in claims)


async def _rescue_and_claim(database: Path, count: int) -> int:
    async with windlass.connect(f"sqlite:///{database}") as client:
        rescued = await client.rescue()
        again = await client.claim_many("work", limit=count, lease=3600)
        assert len(again) == count
        return rescued


async def _in_a_shared_commit(report: Report, database: Path, count: int) -> None:
    """Stale and valid acks of jobs that were claimed again together, all called at once."""
    async with windlass.connect(f"sqlite:///{database}") as client:
        old, new = await _claim_twice(client, count)
        before = reader.dump(database)["windlass_job"]
        mixed = [claim for pair in zip(old[:count], new[count:], strict=True) for claim in pair]
        answers = await asyncio.gather(*(client.ack(claim) for claim in mixed), return_exceptions=True)
        after = reader.dump(database)["windlass_job"]
    stale = {claim.job.id for claim in old[:count]}
    refused = [isinstance(answer, ClaimLost) for answer in answers[::2]]
    report.figure("stale acks among as many valid ones: ClaimLost", sum(refused))
    report.never("stale acks among valid ones accepted", [old[n].job.id for n, lost in enumerate(refused) if not lost])
    report.never("valid acks among stale ones refused", [answer for answer in answers[1::2] if answer is not None])
    report.never("rows that the stale ones changed", _changed(before, after, stale))
    report.needs(f"{count} stale acks beside valid ones", given=len(refused) == count)


async def _in_one_call(report: Report, database: Path, count: int) -> None:
    """One settle call for stale and valid tokens, at the end both tokens of the same jobs."""
    async with windlass.connect(f"sqlite:///{database}") as client:
        old, new = await _claim_twice(client, count)
        before = reader.dump(database)["windlass_job"]
        mixed = [claim for pair in zip(old[:count], new[count:], strict=True) for claim in pair]
        answers = await client.store.settle([_success(claim) for claim in mixed])
        after = reader.dump(database)["windlass_job"]
        both = [claim for pair in zip(old[:count], new[:count], strict=True) for claim in pair]
        twice = await client.store.settle([_success(claim) for claim in both])
    stale = {claim.job.id for claim in old[:count]}
    report.figure("stale settlements in one call with valid ones: refused", answers[::2].count(Settled.LOST))
    report.never("of them accepted", [answer for answer in answers[::2] if answer is not Settled.LOST])
    report.never("valid ones in this call refused", [answer for answer in answers[1::2] if answer is not Settled.DONE])
    report.never("rows that the stale ones changed in this call", _changed(before, after, stale))
    report.never(
        "old and new token of one job in one call: not exactly the new one",
        [pair for pair in zip(twice[::2], twice[1::2], strict=True) if pair != (Settled.LOST, Settled.DONE)],
    )
    report.never("complaints of integrity_check", reader.integrity(database))
    report.needs(f"{count} stale settlements in one call", given=len(answers) == 2 * count)


async def _claim_twice(client: Client, count: int) -> tuple[list[Claim], list[Claim]]:
    """Return the lost and the valid claims of the same jobs, in the same order."""
    await client.enqueue_many([NewJob("work") for _ in range(2 * count)])
    old = await client.claim_many("work", limit=2 * count, lease=0)
    rescued = await client.rescue()
    claimed = {claim.job.id: claim for claim in await client.claim_many("work", limit=2 * count, lease=3600)}
    assert rescued == len(claimed) == 2 * count
    return old, [claimed[claim.job.id] for claim in old]


def _success(claim: Claim) -> Settlement:
    return Settlement(claim.job.id, claim.token, ToSucceeded())


def _differences(before: dict[str, list[tuple[object, ...]]], after: dict[str, list[tuple[object, ...]]]) -> list[str]:
    assert before.keys() == after.keys()
    return [
        f"{table}: {row}" for table in before for row in set(map(repr, before[table])) ^ set(map(repr, after[table]))
    ]


def _changed(before: list[tuple[object, ...]], after: list[tuple[object, ...]], ids: Collection[str]) -> list[str]:
    """Return the rows of these jobs that are not the same in full; the id is the second column."""
    of_them = [{repr(row) for row in rows if row[1] in ids} for rows in (before, after)]
    assert len(of_them[0]) == len(ids)
    return sorted(of_them[0] ^ of_them[1])
