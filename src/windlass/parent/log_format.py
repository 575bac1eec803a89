"""How `windlass worker` writes its log: for people, or as JSON for machines."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO, cast

from windlass.core.escaped import escaped

_COLOURS: Final = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_BELOW: Final = "\n    "


class HumanFormatter(logging.Formatter):
    r"""Time, level, message; what has more lines goes on below, further in, so that no line can pose as another.

    >>> record = logging.makeLogRecord({"levelname": "INFO", "msg": "a\x1b[2Jb\nc", "created": 0.0})
    >>> print(HumanFormatter(coloured=False).format(record))
    1970-01-01 00:00:00.000Z INFO    a\x1b[2Jb
        c
    """

    def __init__(self, *, coloured: bool) -> None:
        """Colour the level, or do not."""
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines for one record."""
        level = f"{record.levelname:<7}"
        if self._coloured:
            level = f"\x1b[{_COLOURS.get(record.levelname, '0')}m{level}\x1b[0m"
        text = escaped(_text(record, self), keep="\n")
        return f"{_moment(record)} {level} {text.replace(chr(10), _BELOW)}"


class JsonFormatter(logging.Formatter):
    """One object on a line: when, how bad, who, what, which process and server, and which job if there is one."""

    server: str | None = None

    def __init__(self, current_job: Callable[[], Mapping[str, Any]]) -> None:
        """Name the job that `current_job` tells of, where a record says nothing itself."""
        super().__init__()
        self._current_job = current_job

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for one record."""
        fields: dict[str, Any] = {
            "time": _moment(record).replace(" ", "T"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
        }
        if self.server is not None:
            fields["server"] = self.server
        fields.update(_given(record) or self._current_job())
        if trace := _trace(record, self):
            fields["exception"] = trace
        return _one_line(fields)


class Logs:
    """The log of one process on stderr: set up once it is known whether the app sets up its own."""

    def __init__(
        self,
        style: str,
        level: str,
        stream: TextIO | None = None,
        *,
        current_job: Callable[[], Mapping[str, Any]] = dict[str, Any],
    ) -> None:
        """Write in `style`, human or json, what is at least of `level`; `current_job` tells what runs, if anything."""
        stream = stream or sys.stderr
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        coloured = stream is not None and stream.isatty() and not plain
        self._json = JsonFormatter(current_job) if style == "json" else None
        self._level = level.upper()
        self._handler = logging.StreamHandler(stream)
        self._handler.setFormatter(self._json or HumanFormatter(coloured=coloured))
        self._ours = logging.getLogger("windlass")
        self._made_of = style, level, current_job
        self.kept_from: int = sys.maxsize
        """From which level on records are wanted by others, who keep them with jobs; set before `take_root`."""

    def __reduce__(self) -> tuple[Callable[..., "Logs"], tuple[object, ...]]:
        """Be made anew on the stderr of the process that this is sent to."""
        return _made_again, (*self._made_of, None if self._json is None else self._json.server, self.kept_from)

    def begin(self) -> None:
        """Show what Windlass itself says; the root stays bare, or `logging.basicConfig` of an app would do nothing."""
        self._ours.addHandler(self._handler)

    def take_root(self) -> None:
        """Show what everybody says, unless somebody has set up the root logger: then that is how it is wanted."""
        self._ours.removeHandler(self._handler)
        root = logging.getLogger()
        if not root.handlers:
            root.addHandler(self._handler)
            # what is wanted by others alone is made, and not shown
            self._handler.setLevel(self._level)
            if self._ours.level == logging.NOTSET:
                self._ours.setLevel(self._level)
            root.setLevel(min(self._handler.level, self.kept_from))
        for name in ("windlass", "windlass.jobs"):
            # `dictConfig` turns off every logger that it does not name, which nobody means for these
            logging.getLogger(name).disabled = False

    def name_server(self, server: str | None) -> None:
        """Name the server that speaks from here on."""
        if self._json is not None:
            self._json.server = server


def _made_again(
    style: str, level: str, current_job: Callable[[], Mapping[str, Any]], server: str | None, kept_from: int
) -> Logs:
    logs = Logs(style, level, current_job=current_job)
    logs.name_server(server)
    logs.kept_from = kept_from
    return logs


def _moment(record: logging.LogRecord) -> str:
    second, millisecond = divmod(int(record.created * 1000), 1000)
    return f"{_second(second)}.{millisecond:03}Z"


@lru_cache(maxsize=2)
def _second(since_1970: int) -> str:
    """Return a moment in UTC; there are thousands of records in a busy second."""
    return f"{datetime.fromtimestamp(since_1970, UTC):%Y-%m-%d %H:%M:%S}"


def _text(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    trace = "" if _says_all(record) else _trace(record, formatter)
    return f"{_message(record)}\n{trace}" if trace else _message(record)


def _message(record: logging.LogRecord) -> str:
    """Return what was said; arguments that do not fit are said as well, since `logging` would write no record then."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - whatever somebody logs is code of its own
        return f"{_words(record.msg)} with {_words(record.args)} (cannot be put together: {_words(error)})"


def _words(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"


def _one_line(fields: Mapping[str, Any]) -> str:
    try:
        return json.dumps(fields, default=_words, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # a key or a number that JSON does not have
        return json.dumps({_words(name): _words(value) for name, value in fields.items()})


def _says_all(record: logging.LogRecord) -> bool:
    """Return whether the message of a failed attempt is enough: it is tried again, or its error has no traceback."""
    outcome = _given(record).get("outcome")
    # an error without a traceback is one line, which is the end of the message
    return outcome == "retry" or (outcome == "dead" and "\n" not in (record.exc_text or ""))


def _trace(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    parts = [_exception(record, formatter)] if record.exc_text or (record.exc_info and record.exc_info[0]) else []
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _exception(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    # a text that the record brings along is what every formatter of `logging` writes
    return record.exc_text or (formatter.formatException(record.exc_info) if record.exc_info else "")


def _given(record: logging.LogRecord) -> dict[str, Any]:
    """Return the facts of the job that a record is about."""
    given: object = getattr(record, "windlass", None)
    if not isinstance(given, dict):
        return {}
    return {name: value for name, value in cast("dict[str, Any]", given).items() if value is not None}
