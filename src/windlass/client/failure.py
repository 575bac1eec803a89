"""An error as the text that is stored of it."""

import traceback
from collections.abc import Callable

from windlass.core.errors import InvalidValue
from windlass.core.job import Failure
from windlass.core.names import MAX_ERROR, MAX_TRACEBACK, shortened


def failure_of(error: object) -> Failure:
    """Return what is stored of a reason in words or of an exception: never the values of local variables."""
    if isinstance(error, str):
        return Failure(cut(error))
    if not isinstance(error, BaseException):
        message = f"an error is a string or an exception, not {type(error).__name__}"
        raise InvalidValue(message)
    name = _safely(lambda: cut(type(error).__qualname__))
    module = _safely(lambda: cut(type(error).__module__))
    return Failure(_safely(lambda: cut(str(error))), name, _traceback(error), module)


def cut(text: str) -> str:
    """Return `text` as it can be stored: within the limit of an error, and in UTF-8."""
    return shortened(_storable(text), MAX_ERROR)


def cut_traceback(text: str) -> str:
    """Return a traceback as it can be stored: its end names the error and the line that raised it."""
    stored = _storable(text)
    return stored if len(stored) <= MAX_TRACEBACK else "... " + stored[4 - MAX_TRACEBACK :]


def _traceback(error: BaseException) -> str | None:
    if error.__traceback__ is None:
        return None
    return _safely(lambda: cut_traceback("".join(traceback.format_exception(error))))


def _safely(text: Callable[[], str]) -> str:
    """Return a text that a user's own code makes; it may raise anything."""
    try:
        return text()
    except BaseException as error:  # noqa: BLE001 - an error that cannot describe itself is still an error
        return f"(its text cannot be shown: {type(error).__qualname__})"


def _storable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")
