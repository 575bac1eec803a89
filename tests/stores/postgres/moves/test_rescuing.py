"""Claims that are taken back in one transaction, and those that stand in its way."""

import asyncio
from datetime import timedelta

import pytest

from tests.stores.postgres.moves.moving import Counted, Mover, proof
from windlass.core.commands import RenewClaims, RescueClaims
from windlass.core.duration import ZERO
from windlass.core.errors import StoreUnavailable
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.states import State
from windlass.core.topics import ENDS, FLAGS, queue_topic
from windlass.stores.postgres.moves.hold_claims import renew
from windlass.stores.postgres.moves.rescue import expired_seqs, rescue, rescue_of
from windlass.testing.conformance.given import HOUR, a_job

EXPIRED = RescueRequest()
NOTHING_KEPT = Retention(Keep(ZERO, ZERO, ZERO))
REFUSE = """
create function refuse() returns trigger language plpgsql as
$$ begin if old.kind = 'poison' and new.state <> 'running' then raise 'not this one'; end if; return new; end $$;
create trigger refuse before update on windlass_job for each row execute function refuse();
"""
FORGIVE = "drop function refuse cascade"


async def test_a_page_of_live_claims_does_not_hide_the_one_that_expired(mover: Mover) -> None:
    await mover.enqueue(*(a_job() for _ in range(1002)))
    await mover.claim(500, lease=HOUR)
    [stuck] = await mover.claim(lease=ZERO)
    await mover.claim(501, lease=HOUR)

    rescued = await mover.do(rescue, RescueClaims(RescueRequest(limit=1000), KEEP_ALL))

    assert rescued == [Rescued(stuck.job.id, State.PENDING)]


@pytest.mark.parametrize("lease", [timedelta(seconds=30), HOUR, timedelta(days=36_500)])
async def test_a_claim_is_not_taken_back_before_its_lease_is_over_however_long_that_is(
    mover: Mover, lease: timedelta
) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim(lease=ZERO)
    await mover.do(renew, RenewClaims([proof(claim)], lease))

    assert await mover.do(rescue, RescueClaims(EXPIRED, KEEP_ALL)) == []


async def test_a_thousand_claims_are_taken_back_by_a_handful_of_statements(mover: Mover) -> None:
    await mover.enqueue(*(a_job(kind="often", max_attempts=2) for _ in range(500)))
    await mover.enqueue(*(a_job(max_attempts=1) for _ in range(500)))
    await mover.claim(1000, lease=ZERO)
    counted = Counted()

    rescued = await mover.do(lambda changes: counted(rescue(changes, RescueClaims(EXPIRED, KEEP_ALL))))

    assert [one.state for one in rescued].count(State.DEAD) == 500
    assert len(counted.statements) <= 5
    stats = await mover.stats()
    assert (stats.pending, stats.dead, stats.running) == (500, 500, 0)
    assert (stats.totals.rescued, stats.totals.dead) == (1000, 500)
    assert mover.told >= {ENDS, FLAGS, queue_topic("default")}


async def test_a_job_at_its_last_attempt_goes_dead_and_its_record_as_it_is_kept(mover: Mover) -> None:
    await mover.enqueue(a_job(max_attempts=1))
    [claim] = await mover.claim(lease=ZERO)

    assert await mover.do(rescue, RescueClaims(EXPIRED, NOTHING_KEPT)) == [Rescued(claim.job.id, State.DEAD)]

    assert mover.run("select 1 from windlass_job union all select 1 from windlass_delivery") == []
    assert (await mover.stats()).totals.dead == 1


async def test_a_job_that_somebody_has_locked_is_left_and_the_others_are_taken(mover: Mover) -> None:
    await mover.enqueue(a_job(), a_job())
    locked, free = await mover.claim(2, lease=ZERO)

    with mover.somebody() as connection:
        connection.execute("select from windlass_job where id = %s::uuid for key share", [locked.job.id])
        rescued = await mover.do(rescue, RescueClaims(EXPIRED, KEEP_ALL))

    assert [one.id for one in rescued] == [free.job.id]
    assert [one.id for one in await mover.do(rescue, RescueClaims(EXPIRED, KEEP_ALL))] == [locked.job.id]


async def test_rescuers_at_once_take_each_claim_back_once(mover: Mover) -> None:
    await mover.enqueue(*(a_job() for _ in range(200)))
    await mover.claim(200, lease=ZERO)

    fifty = RescueClaims(RescueRequest(limit=50), KEEP_ALL)
    taken = await asyncio.gather(*(mover.do(rescue, fifty) for _ in range(12)))

    ids = [one.id for page in taken for one in page]
    assert (len(ids), len(set(ids))) == (200, 200)
    assert (await mover.stats()).totals.rescued == 200


async def test_a_job_that_cannot_be_written_is_passed_by_one_by_one(mover: Mover) -> None:
    await mover.enqueue(a_job(), a_job(kind="poison"), a_job())
    await mover.claim(3, lease=ZERO)
    mover.run(REFUSE)
    try:
        first, poison, last = await mover.do(expired_seqs, EXPIRED)
        with pytest.raises(StoreUnavailable, match="not this one"):
            await mover.do(rescue, RescueClaims(EXPIRED, KEEP_ALL))
        with pytest.raises(StoreUnavailable, match="not this one"):
            await mover.do(rescue_of(poison), RescueClaims(EXPIRED, KEEP_ALL))
        taken = [await mover.do(rescue_of(seq), RescueClaims(EXPIRED, KEEP_ALL)) for seq in (first, last)]
    finally:
        mover.run(FORGIVE)

    assert [len(each) for each in taken] == [1, 1]
    assert (await mover.stats()).running == 1


async def test_one_that_was_renewed_meanwhile_is_not_taken_by_its_number(mover: Mover) -> None:
    await mover.enqueue(a_job())
    [claim] = await mover.claim(lease=ZERO)
    [seq] = await mover.do(expired_seqs, EXPIRED)
    await mover.do(renew, RenewClaims([proof(claim)], HOUR))

    assert await mover.do(rescue_of(seq), RescueClaims(EXPIRED, KEEP_ALL)) == []


async def test_claims_are_looked_for_from_the_mark_on(mover: Mover) -> None:
    await mover.enqueue(a_job(), a_job())
    await mover.claim(lease=ZERO)
    mover.run("insert into windlass_meta values ('lease_mark', clock_timestamp()::text)")
    [later] = await mover.claim(lease=ZERO)

    # the first one's lease ends before the mark, which only a wrong mark allows: it shows where the look begins
    assert await mover.do(rescue, RescueClaims(EXPIRED, KEEP_ALL)) == [Rescued(later.job.id, State.PENDING)]
