"""A server whose queue has damaged jobs, in a SQLite file."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windlass import App, NewJob, Server
from windlass.core.states import State

DAMAGES = ("kind = cast(x'ff' as text)", "headers = '{'", f"created_at = {2**62}", f"attempt = {2**63 - 1}")


async def test_a_server_runs_the_sound_jobs_and_logs_each_damaged_one_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    app = App(f"sqlite:///{path}")
    ran: list[int] = []
    done = asyncio.Event()

    @app.job
    async def work(number: int) -> None:
        ran.append(number)
        if len(ran) == 2:
            done.set()

    async with app:
        client = app.client
        new = [NewJob("default", {"number": number}, kind=work.kind) for number in range(len(DAMAGES) + 2)]
        made = await client.enqueue_many(new)
        damaged = [one.id for one in made[: len(DAMAGES)]]
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for job_id, what in zip(damaged, DAMAGES, strict=True):
                connection.execute(f"update windlass_job set {what} where id = ?", (job_id,))

        async with Server(app):
            await asyncio.wait_for(done.wait(), 20)

        assert sorted(ran) == [4, 5]
        assert [job.state for job in [await client.get(job_id) for job_id in damaged] if job] == [State.DEAD] * 4
    errors = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [(each.name, each.getMessage().split()[1]) for each in errors] == [
        ("windlass.sqlite", job_id) for job_id in damaged
    ]
