"""A worker whose store another process has taken over: it ends by itself, and is not started again."""

from pathlib import Path

import pytest

from tests.parent.given import Running
from windlass.exit_codes import ExitCode

SOURCE = """
import asyncio, threading, time
from dataclasses import replace
from pathlib import Path
import windlass
from windlass.connect import open_store
from windlass.core.errors import Fenced
from windlass.core.topics import Hub

class Taken:
    def __init__(self):
        self.behind = open_store("memory://")
        self.features = replace(self.behind.features, one_owner=True)
        self.hub, self.fenced = Hub(), False
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while not Path("taken").exists():
            time.sleep(0.01)
        self.fenced = True
        self.hub.ring_all()

    def sibling(self):
        return self

    def listen(self, topics, ring):
        self.behind.listen(topics, ring)
        return self.hub.listen(topics, ring)

    def __getattr__(self, name):
        method = getattr(self.behind, name)
        async def call(*args, **kwargs):
            if self.fenced and name != "close":
                raise Fenced("another process has taken it over: stop one of the two")
            return await method(*args, **kwargs)
        return call

app = windlass.App(Taken())

@app.lifespan
async def opened():
    if Path("job").exists():
        await globals()[Path("job").read_text()].enqueue()
    yield

@app.job
def hang_in_a_thread():
    Path("began").touch()
    time.sleep(600)

@app.job
async def block_the_loop():
    Path("began").touch()
    time.sleep(600)

@app.job
async def ignore_all():
    Path("began").touch()
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            continue
"""


@pytest.mark.parametrize("job", [None, "hang_in_a_thread", "block_the_loop", "ignore_all"])
def test_a_worker_whose_store_is_taken_over_ends_by_itself(tmp_path: Path, job: str | None) -> None:
    (tmp_path / "fenced.py").write_text(SOURCE)
    if job is not None:
        (tmp_path / "job").write_text(job)
    with Running(tmp_path, "--shutdown-timeout", "1h", app="fenced:app") as running:
        running.says("ready: ")
        running.children()
        if job is not None:
            running.exists("began")

        (tmp_path / "taken").touch()

        assert running.ends() == ExitCode.FENCED
    errors = [line for line in running.log().splitlines() if " ERROR " in line]
    assert [line.partition(" ERROR ")[2].strip() for line in errors if "do not end" not in line] == [
        "another process has taken it over: stop one of the two"
    ]
    assert "another one is started" not in running.log()


def test_a_worker_that_is_fenced_before_it_works_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "fenced.py").write_text(SOURCE.replace("self.fenced = Hub(), False", "self.fenced = Hub(), True"))
    with Running(tmp_path, app="fenced:app") as running:
        assert running.ends() == ExitCode.FENCED

    assert "stop one of the two" in running.log()
    assert "another one is started" not in running.log()
