"""Those ahead of a job are counted from mark to mark, and none is left out or counted twice."""

from datetime import timedelta
from functools import partial

from tests.stores.postgres.moves.moving import Mover
from windlass.core.ids import JobId
from windlass.core.queries import GetPosition
from windlass.stores.postgres.moves.marks import Line, Ready, look, raise_mark
from windlass.stores.postgres.queries import position
from windlass.stores.postgres.work import Changes, Work
from windlass.testing.conformance.given import a_job


def raised(line: Line, _: Changes) -> Work[bool]:
    looked = yield from look(line)
    return (yield from raise_mark(line, looked.mark))


async def ahead_of(mover: Mover, job_id: JobId) -> int | None:
    found = await mover.do(position, GetPosition(job_id))
    assert found is not None
    return found.ahead


async def test_marks_leave_nobody_out(mover: Mover) -> None:
    # some go first, so that marks have somewhere to rise to
    await mover.enqueue(*(a_job()._replace(priority=priority) for priority in (5, 7)))
    await mover.claim(2, lease=timedelta(hours=1))
    jobs = [a_job()._replace(priority=priority) for priority in (9, 7, 7, 5, 6, 1, 5)]
    ids = await mover.enqueue(*jobs)
    for priority in (7, 5):
        assert await mover.do(partial(raised, Ready("default", priority)))

    places = {job_id: await ahead_of(mover, job_id) for job_id in ids}

    claims = await mover.claim(7)
    assert [places[claim.job.id] for claim in claims] == list(range(7))
    # who runs is not in line any more
    assert await ahead_of(mover, ids[0]) is None
