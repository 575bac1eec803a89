"""A server looks for claims that nobody holds any more again and again, and not at its start alone."""

import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

import windlass
from proofs.children import eventually
from tests.each_store import STORES, new_url
from tests.parent.given import SECONDS, Running
from windlass import BlockingClient, Job, State

LEASE: Final = 2.0
RESCUE_INTERVAL: Final = 0.5
SHARED: Final = {"sqlite", "postgres", "pgbouncer", "redis", "redis+spread", "cluster", "spread"}
"""Stores that several processes open by themselves, so that each of them looks for what nobody holds."""
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""


@pytest.fixture(params=[store for store in STORES if store in SHARED])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with new_url(request.param) as url:
        yield url


def test_what_the_old_server_held_is_rescued_when_it_is_killed_after_the_new_one_has_started(
    tmp_path: Path, url: str
) -> None:
    old_place, new_place = tmp_path / "old", tmp_path / "new"
    old_place.mkdir()
    new_place.mkdir()
    options = ("--url", url, "--lease", f"{LEASE}s")
    with windlass.connect_sync(url) as client, Running(old_place, *options, "--rescue-interval", "1h") as old:
        held = client.enqueue("default", {"name": "go"}, kind="wait_for_file").id
        old.noted("began-go")
        # one that the new server finds at its start
        client.enqueue("others", b"")
        assert client.claim("others", lease=timedelta(milliseconds=1)) is not None

        with Running(new_place, *options, "--rescue-interval", f"{RESCUE_INTERVAL}s") as new:
            new.says("rescued 1 job whose")
            # the old one goes on beside it, and keeps what it has
            until = _read(client, held).lease_expires_at
            assert eventually(lambda: _read(client, held).lease_expires_at != until, SECONDS)
            assert [what for what, _ in new.notes()] == ["opened"]

            killed_at = time.monotonic()
            os.killpg(old.process.pid, signal.SIGKILL)
            new.says("rescued 1 job whose", times=2)
            took = time.monotonic() - killed_at

            new.noted("began-go")
            (new_place / "go").touch()
            assert eventually(lambda: _read(client, held).state is State.SUCCEEDED, SECONDS)
            job = _read(client, held)

    assert took < LEASE + RESCUE_INTERVAL + SPARE
    assert (job.attempt, job.delivery) == (2, 2)
    assert [what for what, _ in old.notes()] == ["opened", "began-go"]


def _read(client: BlockingClient, job_id: str) -> Job:
    job = client.get(job_id)
    assert job is not None
    return job
