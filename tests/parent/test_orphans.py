import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proofs.children import eventually
from tests.parent.given import Running, enqueue, jobs
from windlass.parent.orphans import bury_orphans

SUBREAPER = """
import ctypes, sys
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER: orphans come here, as to process 1
from windlass.cli import main
main()
"""


def zombies(parent: int) -> list[int]:
    return [
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _fields(path)[:2] == ["Z", str(parent)]
    ]


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []


@pytest.mark.skipif(sys.platform != "linux", reason="orphans come to process 1 alone")
def test_orphans_of_jobs_do_not_stay_as_zombies(tmp_path: Path) -> None:
    (tmp_path / "as_process_1.py").write_text(SUBREAPER)
    enqueue(tmp_path, "leave_an_orphan_behind", times=5)
    with Running(tmp_path, wrapper=("as_process_1.py",)) as running:
        running.noted("began-orphan", 5)
        [child] = running.children()[:1]

        # another orphan, whose end is seen after those before it
        enqueue(tmp_path, "leave_an_orphan_behind")
        running.noted("began-orphan", 6)

        assert eventually(lambda: len(running.children()) == 1 and not zombies(running.process.pid), 10)
        assert running.children() == [child]
        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert "another one is started" not in running.log()


def test_as_process_1_it_hears_signals_and_ends_gracefully(tmp_path: Path) -> None:
    """Process 1 gets no signal that it has no handler for, and nobody else is there to reap."""
    launcher = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*launcher, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system lets nobody be process 1 in a room of its own")
    enqueue(tmp_path, "leave_an_orphan_behind", times=3)
    enqueue(tmp_path, "wait_for_file", {"name": "go"})
    with Running(tmp_path, launcher=launcher) as running:
        running.noted("began-orphan", 3)
        running.noted("began-go")
        [parent] = running.children()

        os.kill(parent, signal.SIGTERM)
        running.says("1 job running")
        (tmp_path / "go").touch()

        assert running.process.wait(20) == 0
    assert "child 2 (server" in running.log()
    assert jobs(tmp_path)[-1] == ("succeeded", 1, 1)


def test_the_end_of_a_child_is_left_to_whoever_started_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])

    assert eventually(lambda: (Path("/proc") / str(child.pid) / "stat").read_text().rpartition(")")[2][1] == "Z")
    bury_orphans({child.pid})

    assert child.wait(10) == 7
