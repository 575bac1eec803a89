"""The real thing, as short as it can be."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from proofs.children import eventually


def demo(tmp_path: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "windlass", "demo", *(arguments or ("--seconds", "10"))]
    everything = os.environ | {"TERM": "dumb", "TMPDIR": str(tmp_path)} | environment
    return subprocess.Popen(command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def processes_of(folder: Path) -> list[str]:
    """The processes whose environment names `folder`, where the system tells."""
    found: list[str] = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if os.fsencode(folder) in environment.read_bytes():
                found.append(environment.parent.name)
    return found


def test_the_demo_loses_nothing_and_a_browser_may_watch_it(tmp_path: Path) -> None:
    run = demo(tmp_path, "--seconds", "10", "--stay", WINDLASS_URL="memory://", WINDLASS_MAX_ATTEMPTS="1")
    told = told_until(run, "Watch it in a browser: ")
    with watching(address_in(told)) as stream:
        told += told_until(run, "The dashboard stays at ")
        looked = status_of(f"{address_in(told)}/api/v1/queues")
        changed = status_of(f"{address_in(told)}/api/v1/queues/pause", b'{"queue": "emails"}')
        run.send_signal(signal.SIGINT)
        while stream.recv(4_096):
            pass
    told += run.communicate(timeout=60)[0]

    assert run.returncode == 0, told
    assert "0 lost, 0 settled twice" in told
    assert (looked, changed) == (200, 403)
    assert list(tmp_path.iterdir()) == []
    assert eventually(lambda: processes_of(tmp_path) == [])


def told_until(run: "subprocess.Popen[str]", text: str) -> str:
    """Return what a demo says, up to the line with this text."""
    assert run.stdout is not None
    told = ""
    for line in run.stdout:
        told += line
        if text in line:
            return told
    pytest.fail(told)


def address_in(told: str) -> str:
    found: list[str] = re.findall(r"http://127\.0\.0\.1:\d+", told)
    return found[-1]


def watching(address: str) -> socket.socket:
    """Open the stream of a page."""
    host, _, port = address.removeprefix("http://").partition(":")
    stream = socket.create_connection((host, int(port)), timeout=60)
    stream.sendall(f"GET /live/jobs HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return stream


def status_of(url: str, body: bytes | None = None) -> int:
    """Ask the dashboard of a demo."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - of this test
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - as above
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_the_demo_without_the_fence_finds_stale_settlements(tmp_path: Path) -> None:
    run = demo(tmp_path, "--seconds", "10", "--without", "fence")
    told, _ = run.communicate(timeout=150)

    assert run.returncode == 1, told
    assert "settled by a stale claim: " in told


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["$ windlass worker", "is killed"])
def test_a_stopped_demo_shows_what_was_done_and_leaves_nothing_behind(
    tmp_path: Path, stop: signal.Signals, moment: str
) -> None:
    run = demo(tmp_path)
    assert run.stdout is not None
    for line in run.stdout:
        if moment in line:
            break
    run.send_signal(stop)
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 130, told
    assert re.search("^  lost +0$", told, re.MULTILINE)
    assert "Stopped." in told
    assert list(tmp_path.iterdir()) == []
    assert eventually(lambda: processes_of(tmp_path) == [])


def test_a_demo_that_is_stopped_twice_ends_at_once(tmp_path: Path) -> None:
    run = demo(tmp_path)
    assert run.stdout is not None
    for line in run.stdout:
        if "is killed" in line:
            break
    run.send_signal(signal.SIGINT)
    for line in run.stdout:
        if "Asked to stop" in line:
            break
    run.send_signal(signal.SIGINT)
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 130, told
    assert "Stopped" in told
    assert list(tmp_path.iterdir()) == []
    assert eventually(lambda: processes_of(tmp_path) == [])


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (("--without", "glass"), "--without glass is not known"),
        (("--seconds", "3"), "the story needs from 10 seconds to an hour"),
        (("--seconds", "nan"), "the story needs from 10 seconds to an hour"),
    ],
)
def test_what_the_demo_cannot_do_is_refused(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    run = demo(tmp_path, *arguments)
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 2
    assert complaint in told
