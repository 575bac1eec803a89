"""What the exit codes of the command line mean; scripts may rely on them."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from windlass.core.errors import (
    AppNotLoaded,
    EncodeError,
    Fenced,
    InvalidValue,
    JobNotFound,
    MissingExtra,
    NotAtomicHere,
    ScheduleNotFound,
    StoreUnavailable,
    UnknownKind,
)


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    APP_NOT_LOADED = 3
    NOT_FOUND = 4
    STORE_UNAVAILABLE = 5
    FENCED = 6
    HANGUP = 129
    INTERRUPTED = 130
    QUIT = 131
    BROKEN_PIPE = 141
    TERMINATED = 143


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.DONE: "it was done",
    ExitCode.FAILED: (
        "it failed: `doctor` found an error, `migrate --plan` something to do, the job that was waited for or followed "
        "did not succeed in time, a job was not in a state to be changed, or you said no"
    ),
    ExitCode.WRONG_USAGE: "wrong usage or settings; nothing was done",
    ExitCode.APP_NOT_LOADED: "the app could not be loaded",
    ExitCode.NOT_FOUND: "there is no such job, queue, schedule or token",
    ExitCode.STORE_UNAVAILABLE: "the store is not available, or its schema is not the one that this release works with",
    ExitCode.FENCED: "another process has taken the store over, and this one has stopped",
    ExitCode.HANGUP: "stopped at once by SIGHUP",
    ExitCode.INTERRUPTED: "stopped by SIGINT (Ctrl-C): at once, or between two chunks of jobs, telling what was done",
    ExitCode.QUIT: "stopped at once by SIGQUIT",
    ExitCode.BROKEN_PIPE: "whoever read the output had enough of it",
    ExitCode.TERMINATED: "stopped at once by SIGTERM",
}


def exit_code_of(error: BaseException) -> ExitCode:
    """Return how a command ends that met `error`."""
    match error:
        case AppNotLoaded():
            return ExitCode.APP_NOT_LOADED
        case JobNotFound() | ScheduleNotFound():
            return ExitCode.NOT_FOUND
        case Fenced():
            return ExitCode.FENCED
        case StoreUnavailable():
            return ExitCode.STORE_UNAVAILABLE
        case InvalidValue() | EncodeError() | MissingExtra() | NotAtomicHere() | UnknownKind():
            return ExitCode.WRONG_USAGE
        case _:
            return ExitCode.FAILED
