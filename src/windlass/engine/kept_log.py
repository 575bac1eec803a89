"""The standard log inside a handler, kept with its job as `ctx.log` is."""

import logging
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from windlass.core.names import MAX_LOG_LINE, shortened
from windlass.core.settings import Unset
from windlass.engine.context import running
from windlass.engine.log_message import message_of

logger = logging.getLogger("windlass")

OFF: Final = "off"
LINES_PER_SECOND: Final = 50
"""Lines of one attempt in a second; a loop that logs would push out all else that is kept with its job."""
LAST_LINES: Final = 12
"""Lines of a traceback: its end tells most."""


def least_of(level: str) -> int:
    """Return from which number on records of `logging` are kept, by the setting `job_log_level`."""
    return sys.maxsize if level == OFF else logging.getLevelNamesMapping()[level.upper()]


DEFAULT_LEAST: Final = least_of("info")


class KeptLines:
    """What of the standard log is kept with one attempt."""

    __slots__ = ("_count", "_least", "_note", "_second")

    def __init__(self, least: int, note: Callable[[str, str], None]) -> None:
        """Keep, by `note`, what is at least of the level `least`."""
        self._least = least
        self._note = note
        self._second = 0
        self._count = 0

    def take(self, record: logging.LogRecord) -> None:
        """Keep a record, unless its second has had enough of them."""
        if record.levelno < self._least:
            return
        second = int(record.created)
        self._count = self._count + 1 if second == self._second else 1
        self._second = second
        if self._count <= LINES_PER_SECOND:
            self._note(_level(record.levelno), text_of(record))
        elif self._count == LINES_PER_SECOND + 1:
            self._note("warning", f"more than {LINES_PER_SECOND} lines in this second: the others are left out")


class JobLogHandler(logging.Handler):
    """Keeps the records that running jobs make, and leaves all others alone.

    What Windlass says itself is never kept: it is about jobs, and not by them.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record with the job that it comes from, if there is one."""
        self._let_others_hear(record)
        job = running.get()
        if isinstance(job, Unset) or record.name == "windlass" or record.name.startswith("windlass."):
            return
        try:
            job.kept_lines.take(record)
        except Exception:
            logger.debug("a log line of a job could not be kept", exc_info=True)

    def _let_others_hear(self, record: logging.LogRecord) -> None:
        """Do what `logging` does when nobody has set it up: warnings go to stderr, as if this one were not there."""
        if logging.lastResort is None or logging.getLogger().handlers != [self]:
            return
        above: logging.Logger | None = logging.getLogger(record.name)
        while above is not None:
            if any(handler is not self for handler in above.handlers):
                return
            above = above.parent
        if record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)


_handler: Final = JobLogHandler()
_turn: Final = threading.Lock()
_wanted = 0


def keep_log() -> None:
    """Keep what jobs of this process log, until `leave_log` was called as often.

    To be called when the program has set up its own log: `logging.basicConfig` does nothing where a handler is.
    """
    global _wanted  # noqa: PLW0603 - there is one root logger in a process, and this counts who needs it
    with _turn:
        _wanted += 1
        # each time: `dictConfig` may have taken it away
        logging.getLogger().addHandler(_handler)


def leave_log() -> None:
    """Keep it no longer."""
    global _wanted  # noqa: PLW0603 - as above
    with _turn:
        _wanted -= 1
        if not _wanted:
            logging.getLogger().removeHandler(_handler)


@contextmanager
def kept_log() -> Generator[None]:
    """Keep what jobs of this process log, inside of the block."""
    keep_log()
    try:
        yield
    finally:
        leave_log()


def text_of(record: logging.LogRecord) -> str:
    """Return the line that is kept: who says what, and the end of the traceback."""
    trace = _trace(record)
    text = f"{record.name}: {message_of(record)}"
    return f"{shortened(text, MAX_LOG_LINE // 2)}\n{trace}" if trace else text


def _trace(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    lines = logging.Formatter().formatException(record.exc_info).splitlines()
    return "\n".join(lines[-LAST_LINES:])


def _level(number: int) -> str:
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"
