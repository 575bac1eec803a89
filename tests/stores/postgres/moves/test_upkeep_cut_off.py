"""Whoever ends in the middle of what it does for all keeps nobody waiting: another one does it at once."""

import asyncio
import os
import signal
import time
from typing import Final

import pytest

from tests.postgres.cluster import cluster, schema_of
from tests.stores.postgres.moves.moving import Mover
from tests.stores.postgres.moves.stopped_inside import UPKEEP, stopped_inside
from windlass.core.commands import CancelJobs
from windlass.core.duration import ZERO
from windlass.core.retention import KEEP_ALL
from windlass.stores.postgres.moves.operate import cancel
from windlass.testing.conformance.given import a_job

AT_ONCE: Final = 1.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
FINISHED: Final = 10
EXPIRED: Final = 3
HOLDERS: Final = """
select distinct l.pid from pg_locks l join pg_class c on c.oid = l.relation
where c.relnamespace = to_regnamespace(quote_ident(%s)) and l.pid <> pg_backend_pid()
"""


@pytest.mark.parametrize("name", UPKEEP)
async def test_upkeep_that_is_cut_off_by_the_server_is_done_by_another_one_at_once(mover: Mover, name: str) -> None:
    due = await something_due(mover, name)
    with stopped_inside(mover.url, name):
        assert await by_others(mover, name) == [0, 0, 0]
        [(pid,)] = cluster().run(HOLDERS, [schema_of(mover.url)])

        began = time.monotonic()
        cluster().run("select pg_terminate_backend(%s, 5000)", [pid])

        assert sum(await by_others(mover, name)) == due
        assert time.monotonic() - began < AT_ONCE + SPARE


@pytest.mark.parametrize("name", UPKEEP)
async def test_upkeep_of_a_process_that_is_killed_is_done_by_another_one_at_once(mover: Mover, name: str) -> None:
    due = await something_due(mover, name)
    with stopped_inside(mover.url, name) as process:
        assert await by_others(mover, name) == [0, 0, 0]

        began = time.monotonic()
        os.kill(process, signal.SIGKILL)

        # the server has to notice first
        while not (done := sum(await by_others(mover, name))):
            assert time.monotonic() - began < AT_ONCE + SPARE
        assert done == due


async def something_due(mover: Mover, name: str) -> int:
    """Leave something to be done, and return how much."""
    match name:
        case "prune":
            ids = await mover.enqueue(*(a_job() for _ in range(FINISHED)))
            await mover.do(cancel, CancelJobs(ids, KEEP_ALL))
            return FINISHED
        case "rescue":
            await mover.enqueue(*(a_job("held") for _ in range(EXPIRED)))
            await mover.claim(EXPIRED, queue="held", lease=ZERO)
            return EXPIRED
        case _:
            await mover.enqueue(a_job("counted"))
            [(changes,)] = mover.run("select count(*) from windlass_delta")
            return int(changes)


async def by_others(mover: Mover, name: str) -> list[int]:
    """Let three do it at once, none of whom may wait, and return of how much each took care."""
    async with asyncio.timeout(AT_ONCE + SPARE):
        return await asyncio.gather(*(mover.do(UPKEEP[name]) for _ in range(3)))
