"""Damaged records, told over HTTP: by a serving side whose SQLite file has some."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.http.served import benched
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job, a_schedule, wanting


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def write(path: Path) -> Callable[[str], None]:
    def run(statement: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)

    return run


async def shown(store: Store, job_id: JobId) -> list[Job]:
    """Return a job as each call shows it that gives jobs."""
    [got] = await store.get([job_id])
    listed = await store.jobs(JobFilter(), after=None, limit=10)
    newest = (await store.newest(JobFilter(), before=None, limit=10, most=10)).jobs
    assert got is not None
    return [got, *(job for job in (*listed, *newest) if job.id == job_id)]


async def test_a_damaged_job_is_shown_set_aside_and_passed_by(path: Path, write: Callable[[str], None]) -> None:
    damaged, sound = a_job("q"), a_job("q")
    async with benched(f"sqlite:///{path}") as bench:
        store = bench.through
        await store.enqueue([damaged, sound])
        write(f"update windlass_job set codec = cast(x'ff' as text), created_at = {2**62} where id = '{damaged.id}'")

        before = await shown(store, damaged.id)
        claims = (await store.claim(wanting("q", limit=2))).jobs
        after = await shown(store, damaged.id)

    damage = f"codec is not UTF-8: b'\\xff'; created_at is out of range: {2**62}"
    assert [(job.damage, job.state) for job in before] == [(damage, State.PENDING)] * 3
    assert [claim.job.id for claim in claims] == [sound.id]
    assert [(job.damage, job.state) for job in after] == [(damage, State.DEAD)] * 3


@pytest.mark.parametrize(
    "column, value",
    [
        ("id", "''"),
        ("queue", "cast(x'ff' as text)"),
        ("kind", "''"),
        ("codec", "hex(zeroblob(1000))"),
        ("last_job_id", "'no id'"),
        ("revision", "-1"),
        ("next_run_at", str(2**62)),
        ("headers", "'[]'"),
    ],
)
async def test_a_damaged_schedule_is_shown_beside_others(
    path: Path, write: Callable[[str], None], column: str, value: str
) -> None:
    async with benched(f"sqlite:///{path}") as bench:
        for name in ("a", "b"):
            await bench.through.write_schedule(a_schedule(name), expected=None)
        write(f"update windlass_schedule set {column} = {value} where id = 'a'")

        found = (await bench.through.schedules()).schedules

    assert {schedule.id: (schedule.damage or "").split(" ")[0] for schedule in found} == {
        "-" if column == "id" else "a": column,
        "b": "",
    }
