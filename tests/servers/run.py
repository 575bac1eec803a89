"""What one run of the tests shares: servers that the first test to need one starts, and that end with the run.

The first process of a run names it in the environment, where every process that it starts finds the name. A server
lives in a folder named after the run and is watched by a guard, so that it ends with the run's first process however
that ends.
"""

import atexit
import fcntl
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

GUARD: Final = Path(__file__).with_name("guard.py")
WHOEVER: Final = "-"
"""Who runs a server, for the guard: whoever runs the tests."""
NOBODY: Final = "nobody" if os.geteuid() == 0 else WHOEVER
"""Who runs those that refuse to be run by root, as Postgres and PgBouncer do."""

_NAME: Final = "WINDLASS_TEST_RUN"
_PATIENCE: Final = 15.0


def begin() -> None:
    """Begin a run that ends with this process."""
    os.environ[_NAME] = f"{os.getpid()}-{secrets.token_hex(4)}"


def end() -> None:
    """End the servers of the run that this process began, and wait until they are gone."""
    run = os.environ.get(_NAME, "")
    if _first_process(run) != os.getpid():
        return
    del os.environ[_NAME]
    folders = [folder for folder in Path(tempfile.gettempdir()).glob(f"windlass-{run}-*") if folder.is_dir()]
    for folder in folders:
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int((folder / "guard.pid").read_text()), signal.SIGTERM)
    until = time.monotonic() + _PATIENCE
    while any(folder.exists() for folder in folders) and time.monotonic() < until:
        time.sleep(0.01)


def shared(name: str, start: Callable[[Path], str]) -> str:
    """Return what `start` returned to the first process of this run that asked for `name`.

    It is given a folder, and starts what lives there with `live_in`.
    """
    if _NAME not in os.environ:
        begin()
        atexit.register(end)
    folder = Path(tempfile.gettempdir()) / f"windlass-{os.environ[_NAME]}-{name}"
    folder.mkdir(mode=0o755, exist_ok=True)
    told = folder / "told"
    turn = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not told.exists():
            answer = start(folder)
            told.write_text(answer)
        return told.read_text()
    finally:
        os.close(turn)


def live_in(
    folder: Path, command: Sequence[str | Path], *, log: Path, user: str = NOBODY, kill: bool = False
) -> Callable[[], bool]:
    """Run `command` in `folder` until the run ends; return how to ask whether it still lives; see `guarded`."""
    whole = guarded(command, folder, pid=_first_process(os.environ[_NAME]), user=user, kill=kill)
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # not by subprocess: whoever asks first may be gone long before the server
    guard = os.posix_spawn(
        sys.executable,
        whole,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    (folder / "guard.pid").write_text(str(guard))
    return lambda: os.waitpid(guard, os.WNOHANG)[0] == 0


def guarded(command: Sequence[str | Path], folder: Path, *, pid: int, user: str, kill: bool) -> list[str]:
    """Return the command of a guard that runs `command` in `folder` as long as the process `pid` lives.

    In the end it is asked to quit, or with `kill` not asked.
    """
    how = ["--kill"] if kill else []
    return [sys.executable, "-I", str(GUARD), *how, str(pid), str(folder), user, *map(str, command)]


def _first_process(run: str) -> int:
    return int(run.partition("-")[0] or 0)
