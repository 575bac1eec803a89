"""SeaweedFS, as tests and proofs use it."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs.children import eventually
from tests.servers.another import other_process, told_by
from tests.servers.private import leaving_folders
from tests.slatedb.asking import ask
from tests.slatedb.s3 import BUCKET
from tests.slatedb.weed import Weed

STARTS = """
from tests.slatedb.weed import Weed
with Weed() as weed:
    print(weed.folder, weed.pid, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def weed() -> Iterator[Weed]:
    with Weed() as weed:
        yield weed


def test_a_killed_server_comes_back_with_all_that_it_acknowledged(weed: Weed) -> None:
    killed, endpoint = weed.pid, weed.endpoint
    for number in range(50):
        assert ask(weed.endpoint, "PUT", f"/{BUCKET}/kept/{number}", b"%d" % number).status == 200

    weed.kill()

    assert not weed.runs
    with pytest.raises(ConnectionRefusedError):
        ask(endpoint, "GET", f"/{BUCKET}/kept/0")
    weed.start()
    assert (weed.endpoint, weed.pid == killed) == (endpoint, False)
    assert [ask(endpoint, "GET", f"/{BUCKET}/kept/{number}").body for number in range(50)] == [
        b"%d" % number for number in range(50)
    ]


def test_it_listens_to_nobody_but_this_machine(weed: Weed) -> None:
    own = {each.readlink().name for each in Path(f"/proc/{weed.pid}/fd").iterdir()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in own]

    assert len(listening) > 3
    assert all(address.startswith("0100007F:") for address in listening)


def test_nobody_comes_in_without_the_secret(weed: Weed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ask.__globals__["CREDENTIALS"], "AWS_SECRET_ACCESS_KEY", "another")

    assert ask(weed.endpoint, "GET", f"/{BUCKET}/kept/0").status == 403


def test_a_server_that_is_closed_leaves_nothing() -> None:
    with Weed() as weed:
        pid = weed.pid

    assert not weed.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_whose_folder_is_to_stay_leaves_its_objects() -> None:
    with leaving_folders() as left, Weed() as weed:
        pid = weed.pid
        assert ask(weed.endpoint, "PUT", f"/{BUCKET}/kept", b"looked at").status == 200

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert left == [weed.folder]
    assert any(b"looked at" in each.read_bytes() for each in (weed.folder / "data").rglob("*.dat"))
    shutil.rmtree(weed.folder)


def test_a_server_ends_with_its_process_however_that_ends() -> None:
    with other_process(STARTS) as process:
        folder, pid = told_by(process)
        process.send_signal(signal.SIGKILL)

    assert eventually(lambda: not Path(folder).exists())
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
