"""A store that one process owns, as others meet it from the command line."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass
from proofs.children import eventually
from tests.cli.conftest import Run
from tests.cli.serving import Served
from tests.parent.given import Running
from windlass.exit_codes import ExitCode

OWNED = re.compile(r"the store is owned by \S+:(\d+) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: stop that process")
APP = "import windlass\napp = windlass.App()\n@app.job\nasync def work() -> None: ...\n"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"slatedb+file://{tmp_path}/jobs"


@pytest.fixture
def served(tmp_path: Path, url: str) -> Iterator[Served]:
    """A process that owns the store, with a job and a schedule in it."""
    with Served(tmp_path, url) as served:
        with windlass.connect_sync(served.url) as client:
            client.enqueue("email", b"hello")
            client.schedules.put("nightly", "30 2 * * *", windlass.NewJob("reports"))
        yield served


def test_commands_that_look_do_so_beside_the_owner(served: Served, url: str, run: Run) -> None:
    assert eventually(lambda: "nightly" in run("schedules", "--url", url).out, 20)

    done = run("doctor", "--url", url)

    assert done.code in (0, 1), done.err
    assert "owner" in done.out
    assert served.call("/api/v1/queues")["queues"]


def test_commands_that_change_something_name_the_owner_and_what_to_do(served: Served, url: str, run: Run) -> None:
    for words in (
        ("enqueue", "--queue", "email", "--payload", "hello", "--url"),
        ("schedules", "pause", "nightly", "--url"),
        ("schedules", "run-now", "nightly", "--url"),
        ("serve",),
    ):
        done = run(*words, url)

        assert done.code == ExitCode.STORE_UNAVAILABLE
        found = OWNED.search(done.err)
        assert found is not None, done.err
        assert int(found[1]) == served.process.pid
        assert "`windlass serve`" in done.err
        assert "?take_over=1" in done.err
        assert sum("error" in line.lower() for line in done.err.splitlines()) == 1


def test_who_serves_ends_when_the_store_is_taken_over(served: Served, url: str) -> None:
    with windlass.connect_sync(f"{url}?take_over=1") as client:
        assert served.process.wait(20) == ExitCode.FENCED
        assert client.stats("email").pending == 1

    told = [line for line in served.log.splitlines() if "error" in line.lower()]
    assert len(told) == 1
    assert "taken" in told[0]
    assert "Traceback" not in served.log


def test_a_worker_waits_until_the_owner_has_gone(served: Served, url: str, tmp_path: Path) -> None:
    (tmp_path / "owned.py").write_text(APP)
    with Running(tmp_path, "--url", url, app="owned:app") as running:
        running.says("the server cannot start (1 times in a row)")
        assert OWNED.search(running.log())

        assert served.stop() == ExitCode.DONE

        running.says("ready: ")
        running.signal(signal.SIGTERM)
        assert running.ends() == ExitCode.DONE


def test_a_worker_ends_when_the_store_is_taken_over_and_its_jobs_are_with_the_new_owner(
    url: str, tmp_path: Path
) -> None:
    (tmp_path / "owned.py").write_text(
        "import asyncio, windlass\nfrom pathlib import Path\napp = windlass.App()\n"
        "@app.job\nasync def work() -> None:\n    Path('began').touch()\n    await asyncio.sleep(600)\n"
    )
    with windlass.connect_sync(url) as client:
        job_id = client.enqueue("default", {}, kind="work").id
    with Running(tmp_path, "--url", url, "--shutdown-timeout", "1h", app="owned:app") as running:
        running.exists("began")
        running.children()

        with windlass.connect_sync(f"{url}?take_over=1") as client:
            assert running.ends() == ExitCode.FENCED

            job = client.get(job_id)
            assert job is not None
            assert (job.state, job.attempt) == (windlass.State.RUNNING, 1)
    assert running.log().count(" ERROR ") == 1
    assert "another one is started" not in running.log()


def test_several_processes_are_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "owned.py").write_text(APP)
    with Running(tmp_path, "--url", url, "--processes", "2", app="owned:app") as running:
        assert running.ends() == ExitCode.WRONG_USAGE

    assert "is worked by one process: leave processes=2 out" in running.log()
    assert not (tmp_path / "jobs").exists()
