"""Completion as somebody at a keyboard has it: real shells on a terminal of their own."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL
from tests.cli.given_jobs import fill
from windlass.cli.completion import WHERE

PATIENCE = 60.0
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(windlass completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -Uz compinit && compinit -u; eval "$(windlass completion zsh)"'),
    "fish": (["--no-config", "-i"], "windlass completion fish | source"),
}
"""How each is started without anybody's settings, and what its users write into theirs."""


def found(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"there is no {shell}: install it (apt-get install {shell})")
    return path


def around(home: Path) -> dict[str, str]:
    """Return what a shell is started with: the program first of all, and no settings but the store."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TERM": "xterm", "COLUMNS": "200", "WINDLASS_URL": URL}


def typed(program: Sequence[str], environment: dict[str, str], *steps: tuple[str, str]) -> None:
    """Type each text and wait for what is to be seen then."""
    # a process between, since a shell that is to edit lines has a terminal that is its own
    between = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *program]
    with subprocess.Popen(between, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0) as shell:
        try:
            assert shell.stdin is not None
            assert shell.stdout is not None
            for text, shown in steps:
                shell.stdin.write(text.encode())
                read_until(shell.stdout.fileno(), shown)
        finally:
            # the terminal is gone with it, and so is the shell
            shell.kill()


def read_until(terminal: int, shown: str) -> None:
    seen = b""
    until = time.monotonic() + PATIENCE
    while shown.encode() not in seen:
        readable, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
        more = os.read(terminal, 65_536) if readable else b""
        assert more, f"no {shown!r} in {seen!r}"
        seen += more


def test_every_shell_that_is_offered_is_tried() -> None:
    assert set(SHELLS) == set(WHERE)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_tab_completes_can_be_run(shell: str, tmp_path: Path) -> None:
    flags, setup = SHELLS[shell]
    program = [found(shell), *flags]
    fill(URL)

    # what is waited for is not what is typed, which a terminal shows too
    typed(
        program,
        around(tmp_path),
        (f"{setup}; echo rea''dy\n", "ready\r\n"),
        ("windlass que\tpau\tma\t --json\n", '"paused"'),
    )

    with windlass.connect_sync(URL) as client:
        assert [client.stats(queue).paused for queue in ("mail", "reports")] == [True, False]


def test_fish_shows_all_that_a_command_says_of_itself(tmp_path: Path) -> None:
    asked = 'windlass completion fish | source; complete -C "windlass job"'

    done = subprocess.run(
        [found("fish"), "--no-config", "-c", asked],
        env=around(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "jobs\tSee jobs, and change their course.\n"
