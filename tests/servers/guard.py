"""A program that runs another one, and ends it when the process that needs it is gone, however that ended.

    python guard.py [--kill] PID FOLDER USER COMMAND...

It runs COMMAND in FOLDER as USER ("-": as whoever runs it). When the process PID has ended, or on SIGTERM, it ends
the command, by SIGQUIT or with --kill by SIGKILL, and removes FOLDER. On SIGUSR1 it ends the command too, and the
folder stays. When the command ends by itself, so does the guard, with the same code, and the folder stays.
"""

import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import NoReturn

PATIENCE = 5.0


class Stopped(BaseException):
    """Somebody asks the guard to stop."""


class StoppedToLook(Stopped):
    """Somebody wants to look at the folder."""


def main(how: signal.Signals, pid: int, folder: str, user: str, command: list[str]) -> int:
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGUSR1, _stop)
    # Ctrl-C is meant for the tests, and the guard sees to it that they end first
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process: subprocess.Popen[bytes] | None = None
    stays = False
    try:
        process = _start(folder, user, command)
        _wait_for_either(pid, process)
        if process.poll() is not None:
            return process.returncode
    except Stopped as stopped:
        stays = isinstance(stopped, StoppedToLook)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if process is not None:
        _end(process, how)
    if not stays:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise StoppedToLook if number == signal.SIGUSR1 else Stopped


def _start(folder: str, user: str, command: list[str]) -> "subprocess.Popen[bytes]":
    if user == "-":
        return subprocess.Popen(command, cwd=folder, start_new_session=True)
    group = pwd.getpwnam(user).pw_gid
    return subprocess.Popen(command, cwd=folder, start_new_session=True, user=user, group=group, extra_groups=[])


def _wait_for_either(pid: int, process: "subprocess.Popen[bytes]") -> None:
    if not hasattr(os, "pidfd_open"):
        _look_again_and_again(pid, process)
        return
    try:
        # also tells of a process that has ended and that nobody has asked for its code
        needed = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(needed, select.POLLIN)
    poll.register(os.pidfd_open(process.pid), select.POLLIN)
    poll.poll()


def _look_again_and_again(pid: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
    # on SIGQUIT Postgres throws its memory away and ends at once, PgBouncer does the same; others would dump a core
    process.send_signal(how)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    given = sys.argv[1:]
    ends_by = signal.SIGQUIT
    if given[0] == "--kill":
        ends_by = signal.SIGKILL
        del given[0]
    sys.exit(main(ends_by, int(given[0]), given[1], given[2], given[3:]))
