"""A store that nobody can reach: what a command says before it gives up, in a process of its own."""

import subprocess
import sys

import pytest

NOBODY = ["postgres://me:secret@127.0.0.1:1/shop", "redis://me:secret@127.0.0.1:1", "http://127.0.0.1:1"]


def call(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "windlass", *args]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("url", NOBODY)
def test_a_command_says_once_what_it_waits_for_before_it_gives_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_TOKEN", "secret")

    done = call("stats", "--url", f"{url}?timeout=1.5")

    warned, ended = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (5, "")
    assert warned.startswith("warning: nothing listens ")
    assert "127.0.0.1:1" in warned
    assert warned.endswith("; it is tried for 0.5 s more")
    assert ended.startswith("error: nothing listens ")
    assert "secret" not in done.stderr


def test_a_deadline_that_comes_sooner_needs_no_warning() -> None:
    done = call("stats", "--url", "redis://127.0.0.1:1?timeout=0.2")

    [ended] = done.stderr.splitlines()
    assert ended.startswith("error: nothing listens ")


@pytest.mark.parametrize("command", ["serve", "dashboard"])
def test_a_command_with_a_log_of_its_own_says_it_there_alone(command: str) -> None:
    done = call(command, "redis://127.0.0.1:1?timeout=1.5")

    warned = [line for line in done.stderr.splitlines() if "it is tried for" in line]
    assert (done.returncode, len(warned)) == (5, 1)
    assert "WARNING nothing listens" in warned[0]
