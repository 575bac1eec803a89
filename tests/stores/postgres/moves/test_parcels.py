"""Jobs that come from another store, and go to one: their places, their texts, and how many are looked at."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import pytest

from tests.stores.postgres.moves.moving import Counted, Mover
from windlass.core.commands import DeleteMoved, UnpackJobs
from windlass.core.job import Delivery, Failure, Job, LogLine, PreparedJob
from windlass.core.moving import Packed, Parcel
from windlass.core.queries import PackJobs
from windlass.stores.postgres.moves import pack as packing
from windlass.stores.postgres.moves.marks import Due, Line, Look, Ready, look, raise_mark
from windlass.stores.postgres.moves.pack import let_go, pack
from windlass.stores.postgres.moves.unpack import unpack
from windlass.stores.postgres.work import Changes, Work
from windlass.testing.conformance.given import a_job

OLD: Final = datetime(2020, 1, 1, tzinfo=UTC)


async def packed(mover: Mover, *, near: int | None = None, limit: int = 100) -> Packed:
    return await mover.do(partial(pack, near=near), PackJobs("default", limit))


async def taken_out(mover: Mover, *jobs: PreparedJob) -> list[Job]:
    """Enqueue jobs, and return them as another store would bring them."""
    await mover.enqueue(*jobs)
    found = list((await packed(mover)).jobs)
    await mover.do(let_go, DeleteMoved(jobs=[job.id for job in found]))
    return found


async def bring(mover: Mover, *jobs: Job, number: int = 1) -> bool:
    return await mover.do(unpack, UnpackJobs(Parcel("move", "default", number, Packed(jobs, ()))))


def looked_at(_: Changes, line: Line) -> Work[Look]:
    return look(line)


def raised(line: Line, to: datetime, _: Changes) -> Work[bool]:
    return raise_mark(line, to)


async def test_a_job_that_is_older_than_a_mark_is_found(mover: Mover) -> None:
    [waiting, later] = await taken_out(mover, a_job(), a_job(delay=timedelta(hours=1)))
    for line in (Ready("default", waiting.priority), Due("default")):
        looked = await mover.look(looked_at, line)
        assert await mover.do(partial(raised, line, looked.mark))

    # the clock of the other store was behind: what was scheduled there is due here
    assert await bring(mover, waiting._replace(run_at=OLD), later._replace(run_at=OLD + timedelta(days=1)))

    claims = await mover.claim(2)
    assert [(claim.job.id, claim.job.run_at.year) for claim in claims] == [(waiting.id, 2020), (later.id, 2020)]


async def test_texts_that_postgres_does_not_know_are_written_out(mover: Mover) -> None:
    [job] = await taken_out(mover, a_job())
    failed = Delivery(1, 1, OLD, OLD, "w\0", "failed", Failure("no\0", "E\0", "\ud800"))
    line = LogLine(OLD, "info", "half a pair: \udfff, zero: \0", 1)

    await bring(mover, job._replace(delivery=1, attempt=1, last_error="E: no\0", history=(failed,), log=(line,) * 3))

    there = await mover.get(job.id)
    assert there.last_error == "E: no\\0"
    assert there.history == (failed._replace(worker="w\\0", failure=Failure("no\\0", "E\\0", "\\ud800")),)
    assert there.log == (line._replace(text="half a pair: \\udfff, zero: \\0"),) * 3


async def test_the_second_parcel_is_found_without_a_look_at_all_that_waits(mover: Mover) -> None:
    ids = await mover.enqueue(*(a_job() for _ in range(6)))
    first = await packed(mover, limit=2)
    await mover.do(let_go, DeleteMoved(jobs=[job.id for job in first.jobs]))
    counted = Counted()

    second = await mover.do(
        lambda changes: counted(pack(changes, PackJobs("default", 2), near=first.jobs[0].seq)),
    )

    assert [job.id for job in (*first.jobs, *second.jobs)] == ids[:4]
    assert counted.statements == ["waiting_near", "pack"]


async def test_a_job_that_waits_again_is_found_behind_the_last_parcel(mover: Mover) -> None:
    ids = await mover.enqueue(a_job(), a_job())

    found = await packed(mover, near=10**9)

    assert [job.id for job in found.jobs] == ids


async def test_a_parcel_is_cut_where_it_would_be_too_large(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BYTES_AT_ONCE", 2_000)
    ids = await mover.enqueue(*(a_job(payload=b"x" * size) for size in (1_000, 900, 200, 5_000)))

    assert [job.id for job in (await packed(mover)).jobs] == ids[:2]
    await mover.do(let_go, DeleteMoved(jobs=ids[:3]))
    # one at least, however large it is
    assert [job.id for job in (await packed(mover)).jobs] == ids[3:]
