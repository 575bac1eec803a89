"""What a log line says, when its format and its arguments are put together."""

from logging import NOTSET, LogRecord


def put_together(text: str, args: tuple[object, ...]) -> str:
    """Return what the standard log would say; see `message_of`."""
    return message_of(LogRecord("", NOTSET, "", 0, text, args, None))


def message_of(record: LogRecord) -> str:
    """Return what a record says; one whose arguments do not fit is its text with them beside it, and no error."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - whatever somebody logs is code of its own
        return _as_it_came(record, error)


def _as_it_came(record: LogRecord, error: Exception) -> str:
    try:
        return f"{record.msg} {record.args!r}"
    except Exception:  # noqa: BLE001 - as above
        return f"{type(record.msg).__name__} that cannot be put together: {type(error).__name__}"
