"""Names and limits: what a user may call things, and how large they may be."""

import re
from typing import Final

from windlass.core.errors import InvalidName, InvalidValue, ValueTooLarge

MAX_NAME: Final = 200
MAX_PAYLOAD: Final = 1024 * 1024
MAX_KEY: Final = 1024
MAX_VALUE: Final = 256 * 1024
MAX_HEADER: Final = 8 * 1024
MAX_ERROR: Final = 8 * 1024
MAX_TRACEBACK: Final = 16 * 1024
MAX_PRIORITY: Final = 2**31 - 1
MAX_ATTEMPTS: Final = 2**31 - 1
HISTORY_KEPT: Final = 20
LOG_LINES_KEPT: Final = 500
MAX_LOG_LINE: Final = 4 * 1024
MAX_SEARCH: Final = 1_000
"""Characters of a text that jobs are found by; it may have to stand in a URL."""

_ALLOWED = re.compile(r"[A-Za-z0-9_.:/@#-]{1,200}", re.ASCII)
_known: set[str] = set()
_KNOWN_MOST = 4096


def check_name(name: object, what: str) -> str:
    """Return `name` if it may name a `what`; raise `InvalidName` saying which character is wrong."""
    if isinstance(name, str) and name in _known:
        return name
    if not isinstance(name, str):
        raise InvalidName(what, name, f"is {type(name).__name__}, not a string")
    if not _ALLOWED.fullmatch(name):
        raise InvalidName(what, name, _problem(name))
    if len(_known) < _KNOWN_MOST:
        _known.add(name)
    return name


def _problem(name: str) -> str:
    if not name:
        return "is empty"
    if len(name) > MAX_NAME:
        return f"has {len(name):,} characters"
    wrong = next(c for c in name if not _ALLOWED.fullmatch(c))
    return f"has the character {wrong!r} (U+{ord(wrong):04X})"


def check_priority(priority: object) -> int:
    """Return `priority` if it is an integer from 0 to 2**31-1."""
    return _check_integer(priority, "priority", 0, MAX_PRIORITY)


def check_max_attempts(attempts: object) -> int:
    """Return `attempts` if it is an integer from 1 up."""
    return _check_integer(attempts, "max_attempts", 1, MAX_ATTEMPTS)


def check_limit(limit: object) -> int:
    """Return `limit` if it is an integer from 0 up."""
    return _check_integer(limit, "limit", 0, 2**31 - 1)


def _check_integer(value: object, what: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{what} must be an integer, not {value!r}"
        raise InvalidValue(message)
    if not least <= value <= most:
        shown = f"{value:,}" if abs(value) < 2**64 else "a far larger number"
        message = f"{what} must be from {least:,} to {most:,}, not {shown}"
        raise InvalidValue(message)
    return value


def check_key(key: object) -> bytes:
    """Return a kv key as bytes: `bytes`, or `str` as UTF-8, of 1 to 1,024 bytes."""
    data = _utf8(key, "a kv key") if isinstance(key, str) else key
    if not isinstance(data, bytes):
        message = f"a kv key is bytes or str, not {type(key).__name__}"
        raise InvalidValue(message)
    if not 1 <= len(data) <= MAX_KEY:
        message = f"a kv key has 1 to {MAX_KEY:,} bytes, not {len(data):,}"
        raise InvalidValue(message)
    return data


def check_value(value: object) -> bytes:
    """Return a kv value if it is bytes within the limit."""
    if not isinstance(value, bytes):
        message = f"a kv value is bytes, not {type(value).__name__}: encode it first"
        raise InvalidValue(message)
    if len(value) > MAX_VALUE:
        raise ValueTooLarge("kv value", len(value), MAX_VALUE)
    return value


def check_header(key: object, value: object) -> None:
    """Refuse a header whose key is no name, or whose value is no text within the limit."""
    check_name(key, "header key")
    if not isinstance(value, str):
        message = f"header {key!r} must be a string, not {type(value).__name__}"
        raise InvalidValue(message)
    size = len(_utf8(value, f"header {key!r}"))
    if size > MAX_HEADER:
        raise ValueTooLarge(f"header {key!r}", size, MAX_HEADER)


def check_text(text: object, what: str) -> None:
    """Refuse a text that is looked for, unless it has something to look for and is of a size that people look for."""
    size = len(check_utf8(text, what).decode())
    if not size:
        message = f"{what} is empty, which every job would match: leave it out"
        raise InvalidValue(message)
    if size > MAX_SEARCH:
        message = f"{what} has {size:,} characters: search for a part of it, of up to {MAX_SEARCH:,}"
        raise InvalidValue(message)


def check_utf8(text: object, what: str) -> bytes:
    """Return the bytes of a text, if it is one that stores can be asked with."""
    if not isinstance(text, str):
        message = f"{what} must be a string, not {type(text).__name__}"
        raise InvalidValue(message)
    return _utf8(text, what)


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"{what} cannot be written as UTF-8: {error.reason} at position {error.start}"
        raise InvalidValue(message) from None


def shortened(text: str, most: int) -> str:
    """Return `text` with at most `most` characters, its middle left out when it has more."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
