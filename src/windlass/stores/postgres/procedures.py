"""Commands and queries of a Postgres store that take several transactions, wait, or use more than the database."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from windlass.core import commands, queries
from windlass.core.errors import StoreUnavailable
from windlass.core.looks import Finding
from windlass.core.moving import Packed
from windlass.core.requests import Renewed, Rescued
from windlass.core.store_calls import table_of
from windlass.stores.postgres.check import check
from windlass.stores.postgres.commands import execute
from windlass.stores.postgres.moves import departure, hold_claims, operate, pack, promote, rescue
from windlass.stores.postgres.moves.departure import Beginner
from windlass.stores.postgres.moves.hold_claims import Untouched
from windlass.stores.postgres.room import Room

logger = logging.getLogger("windlass.postgres")

NOTED_AGAIN_AFTER: Final = 0.02
RENEW_LOCKED_WITHIN: Final = 2.0
LOOK_FOR_BEGINNERS: Final = 0.02
LEAST: Final = 0.5
"""Seconds for the last query of the transactions that are waited for, so that the error can name them."""
_SHOWN: Final = 3


async def renew(room: Room, command: commands.RenewClaims) -> list[Renewed | None]:
    """Extend leases by one statement; jobs that another transaction has locked are waited for, but not for long."""
    claims = command.claims
    renewed = await room.runner.run(lambda changes: hold_claims.renew(changes, command), whole=False)
    left = [claim for claim, one in zip(claims, renewed, strict=True) if isinstance(one, Untouched)]
    if not left:
        return renewed
    again = commands.RenewClaims(left, command.lease)
    try:
        waited = await room.runner.run(
            lambda changes: hold_claims.renew_locked(changes, again), timeout=RENEW_LOCKED_WITHIN
        )
    except StoreUnavailable as error:
        # these claims hold for as long as before, and no rescue takes a job that is locked
        logger.debug("%d leases were not renewed, since their jobs are locked: %s", len(left), error)
        return renewed
    found = dict(zip(left, waited, strict=True))
    return [found.get(claim, one) for claim, one in zip(claims, renewed, strict=True)]


async def note(room: Room, command: commands.WriteNotes) -> Sequence[bool | None]:
    """Write progress and log lines; a job that is locked for a moment, as by a renewal, is tried once more."""
    written = await execute(room, hold_claims.note, command)
    left = [note for note, done in zip(command.notes, written, strict=True) if done is None]
    if not left:
        return written
    await asyncio.sleep(NOTED_AGAIN_AFTER)
    again = iter(await execute(room, hold_claims.note, commands.WriteNotes(left)))
    return [next(again) if done is None else done for done in written]


async def set_queue_settings(room: Room, command: commands.SetQueueSettings) -> None:
    """Set settings of a queue; after a pause, wait for the claims that began before."""
    await execute(room, operate.set_queue_settings, command)
    if command.settings.paused:
        await room.runner.run(lambda _: operate.barrier())


async def rescue_claims(room: Room, command: commands.RescueClaims) -> list[Rescued]:
    """Take back claims together; one by one where one cannot be written, so that the others are rescued."""
    try:
        return await execute(room, rescue.rescue, command)
    except StoreUnavailable as error:
        if error.retryable:
            raise
        logger.warning("expired claims are rescued one by one, since together they cannot be: %s", error)
    return await _rescue_each(room, command)


async def _rescue_each(room: Room, command: commands.RescueClaims) -> list[Rescued]:
    rescued: list[Rescued] = []
    for seq in await room.runner.look(lambda changes: rescue.expired_seqs(changes, command.request)):
        try:
            rescued += await execute(room, rescue.rescue_of(seq), command)
        except StoreUnavailable as error:
            if error.retryable:
                raise
            logger.error("the claim on job number %d cannot be rescued: %s", seq, error)  # noqa: TRY400 - it says why
    return rescued


async def promote_jobs(room: Room, command: commands.PromoteJobs) -> int:
    """Make due jobs pending; a repeat after a lost reply promotes and counts what has come due since."""
    return await room.runner.run(lambda changes: promote.promote(changes, command))


async def prune(room: Room, command: commands.PruneRecords) -> int:
    """Delete records past their retention, page by page."""
    return await room.pruner.prune(command.retention, command.limit)


async def set_moved(room: Room, command: commands.SetMoved) -> None:
    """Let this store take nothing new, or again; returns when no call that began before is in progress.

    When these do not end before the deadline, `StoreUnavailable` says whose they are: the store is marked then, and
    the call can be repeated.
    """
    deadline = asyncio.get_running_loop().time() + room.options.timeout
    await execute(room, departure.set_moved, command)
    if command.moved is not None:
        await _wait_for_beginners(room, deadline)


async def _wait_for_beginners(room: Room, deadline: float) -> None:
    """Wait for the end of every transaction that may not have seen the mark."""
    loop = asyncio.get_running_loop()
    first = left = await _beginners(room, deadline)
    while left:
        if loop.time() > deadline:
            raise StoreUnavailable(_who_blocks(left), retryable=True)
        await asyncio.sleep(LOOK_FOR_BEGINNERS)
        left = departure.still_under_way(first, await _beginners(room, deadline))


async def _beginners(room: Room, deadline: float) -> list[Beginner]:
    left = deadline - asyncio.get_running_loop().time()
    return await room.runner.look(lambda _: departure.beginners(), timeout=max(left, LEAST))


def _who_blocks(left: Sequence[Beginner]) -> str:
    return (
        "the store takes nothing new from now on, but transactions that began before are still open: "
        f"{', '.join(map(str, left[:_SHOWN]))}; let them end, or end them with pg_terminate_backend, and try again"
    )


async def pack_jobs(room: Room, query: queries.PackJobs) -> Packed:
    """Return waiting jobs whole; they are looked for from where the last parcel of the queue began."""
    near = room.packed_from.get(query.queue)
    packed = await room.runner.look(lambda changes: pack.pack(changes, query, near=near), whole=True)
    if packed.jobs:
        # those may be deleted next: what comes behind them is looked for from there
        room.packed_from[query.queue] = packed.jobs[0].seq
    return packed


async def check_store(room: Room, query: queries.CheckStore) -> list[Finding]:
    """Check the server, its settings and the tables, and whether notifications come."""
    del query
    return await room.runner.look(lambda _: check(room.options, pooled=room.pooled, hears=room.hears))


COMMANDS: Final = table_of(
    commands.RenewClaims.by_coroutine(renew),
    commands.WriteNotes.by_coroutine(note),
    commands.SetQueueSettings.by_coroutine(set_queue_settings),
    commands.RescueClaims.by_coroutine(rescue_claims),
    # without a receipt, though its repeat is no repeat of the same: a server promotes each second, and would write a
    # row each time
    commands.PromoteJobs.by_coroutine(promote_jobs),
    commands.PruneRecords.by_coroutine(prune),
    commands.SetMoved.by_coroutine(set_moved),
)
"""The coroutine that executes a command around its steps."""
QUERIES: Final = table_of(
    queries.PackJobs.by_coroutine(pack_jobs),
    queries.CheckStore.by_coroutine(check_store),
)
"""The coroutine that executes a query."""
