"""Renewals, notes and fences, beside others who have the same jobs locked."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from tests.stores.postgres.moves.moving import Counted, Mover, proof
from windlass.core.commands import CancelJobs, RenewClaims, RescueClaims, WriteNotes
from windlass.core.job import Claim, Note, Progress, Token
from windlass.core.names import LOG_LINES_KEPT
from windlass.core.requests import CancelOutcome, Renewed, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.stores.postgres.moves.hold_claims import Untouched, fence_all, note, renew, renew_locked
from windlass.stores.postgres.moves.operate import cancel
from windlass.stores.postgres.moves.rescue import rescue
from windlass.stores.postgres.statements import statement
from windlass.testing.conformance.given import HOUR, a_job

LOCK = "select from windlass_job where id = %s::uuid for update"
RAW = psycopg.RawCursor[tuple[object, ...]]
FORCED = RescueRequest(force=True)


def fenced(connection: psycopg.Connection[tuple[object, ...]], claim: Claim) -> bool:
    """Fence a claim in somebody's own transaction."""
    with RAW(connection) as cursor:
        rows = cursor.execute(statement("fence").text.encode(), [[claim.job.id], [claim.token]]).fetchall()
    return [(row[1], row[12]) for row in rows] == [proof(claim)]


async def test_a_job_that_somebody_has_locked_does_not_hold_up_the_renewals_of_others(mover: Mover) -> None:
    await mover.enqueue(a_job(), a_job())
    free, locked = await mover.claim(2)

    with mover.somebody() as connection:
        connection.execute(LOCK, [locked.job.id])
        answers = await mover.do(renew, RenewClaims([proof(free), proof(locked)], HOUR))

    assert [type(answer) for answer in answers] == [Renewed, Untouched]
    assert answers[0] is not None
    assert answers[0].lease_expires_at > free.job.claimed_at + timedelta(minutes=59)  # type: ignore[operator]
    assert answers[1] == Renewed(locked.job.lease_expires_at, cancel_requested=False)  # type: ignore[arg-type]


async def test_a_renewal_that_may_wait_is_done_when_the_lock_is_gone(mover: Mover) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim()

    with mover.somebody() as connection:
        connection.execute(LOCK, [claim.job.id])
        renewing = asyncio.ensure_future(mover.do(renew_locked, RenewClaims([proof(claim)], HOUR)))
        await asyncio.wait({renewing}, timeout=0.05)
        waited = not renewing.done()

    [answer] = await renewing
    assert waited
    assert type(answer) is Renewed
    assert (await mover.get(claim.job.id)).lease_expires_at == answer.lease_expires_at


@pytest.mark.parametrize("token", ["", "stale", "00000000-0000-0000-0000-000000000000", "A" * 36, "é" * 36])
async def test_what_is_no_token_holds_nothing(mover: Mover, token: str) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim()
    pair = (claim.job.id, Token(token))

    assert await mover.do(renew, RenewClaims([pair, proof(claim)], HOUR)) != [None, None]
    assert await mover.do(renew, RenewClaims([pair], HOUR)) == [None]
    assert await mover.do(lambda _: fence_all([pair])) == [False]
    assert await mover.do(note, WriteNotes([Note(*pair, Progress(1))])) == [False]


async def test_a_fence_keeps_rescues_off_and_lets_renewals_notes_and_cancels_go_on(mover: Mover) -> None:
    [job_id] = await mover.enqueue(a_job())
    [claim] = await mover.claim()

    with mover.somebody() as connection:
        assert fenced(connection, claim)
        taken = await mover.do(rescue, RescueClaims(FORCED, KEEP_ALL))
        [renewed] = await mover.do(renew, RenewClaims([proof(claim)], HOUR))
        noted = await mover.do(note, WriteNotes([Note(*proof(claim), Progress(1))]))
        told = await mover.do(cancel, CancelJobs([job_id], KEEP_ALL))
        # the row has been written anew since: the fence must hold that one too
        taken += await mover.do(rescue, RescueClaims(FORCED, KEEP_ALL))

    assert taken == []
    assert type(renewed) is Renewed
    assert (noted, told) == ([True], [CancelOutcome.REQUESTED])
    assert [one.id for one in await mover.do(rescue, RescueClaims(FORCED, KEEP_ALL))] == [job_id]


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
async def test_renewals_do_not_make_a_transaction_fail_that_sees_one_moment(
    mover: Mover, level: psycopg.IsolationLevel
) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim()

    with mover.somebody() as connection:
        connection.isolation_level = level
        assert fenced(connection, claim)
        [answer] = await mover.do(renew, RenewClaims([proof(claim)], HOUR))
        connection.execute("update windlass_job set state = 'succeeded' where id = %s::uuid", [claim.job.id])
        connection.commit()

    assert type(answer) is Untouched


async def test_only_the_last_lines_of_a_job_are_kept(mover: Mover) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim()

    for first in range(0, LOG_LINES_KEPT + 200, 100):
        lines = [("info", str(number)) for number in range(first, first + 100)]
        await mover.do(note, WriteNotes([Note(*proof(claim), None, lines)]))

    log = (await mover.get(claim.job.id)).log
    assert [line.text for line in log] == [str(number) for number in range(200, LOG_LINES_KEPT + 200)]
    assert mover.run("select count(*) from windlass_log") == [(LOG_LINES_KEPT,)]


async def test_notes_of_one_claim_in_one_call_are_written_in_their_order(mover: Mover) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim()
    notes = [
        Note(*proof(claim), Progress(1, 3), [("info", "a\0b"), ("info", "\ud800")]),
        Note(*proof(claim), Progress(2, 3), [("error", "c")]),
        Note(*proof(claim)),
    ]

    assert await mover.do(note, WriteNotes(notes)) == [True, True, True]

    job = await mover.get(claim.job.id)
    assert job.progress == Progress(2, 3)
    assert [(line.level, line.text) for line in job.log] == [("info", "a\\0b"), ("info", "\\ud800"), ("error", "c")]


async def test_a_thousand_notes_are_a_handful_of_statements(mover: Mover) -> None:
    await mover.enqueue(*(a_job() for _ in range(1000)))
    notes = [Note(*proof(claim), Progress(1), [("info", "begun")]) for claim in await mover.claim(1000)]
    counted = Counted()

    assert all(await mover.do(lambda changes: counted(note(changes, WriteNotes(notes)))))

    assert len(counted.statements) <= 5
