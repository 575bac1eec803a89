"""A process that forks while it has a store open: parent and child go on, each with connections of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import windlass
from tests.http.in_thread import served_in_thread
from tests.stores.redis.test_fork import ASYNC, BLOCKING
from windlass import JobFilter

ROOM = "client.store._room.runner._connections"
OF_REDIS = (
    (f"[connections] = {ROOM}.values()", f"connections = {ROOM}"),
    ('assert await lent.ask("ECHO", "mine") == b"mine"', "assert not lent.broken"),
)


@pytest.mark.parametrize("leave", ["at once", "as usual"])
@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
async def test_a_forked_child_uses_the_store_of_its_parent_while_the_parent_goes_on(
    tmp_path: Path, program: str, leave: str
) -> None:
    for redis, http in OF_REDIS:
        program = program.replace(redis, http)
    with served_in_thread(f"sqlite:///{tmp_path}/jobs.db") as url:
        # -W ignore: Python warns of every fork in a process with threads, which is what this is about
        command = [sys.executable, "-W", "ignore", "-c", program, url, leave]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: ASYNC221

        assert (ended.returncode, ended.stderr) == (0, "")
        assert json.loads(ended.stdout) == {"status": 0, "parent": 13, "heard": True}
        async with windlass.connect(url) as client:
            left = [job.payload for job in await client.jobs(JobFilter(queue="left"), limit=1000)]
            stats = await client.stats()
    assert {name: left.count(name) for name in left} == {b"before": 3, b"parent": 10, b"after": 3, b"child": 10}
    assert (stats.totals.succeeded, stats.totals.rescued) == (26, 0)
