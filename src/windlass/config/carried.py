"""What a job carries, and what it returned, as people may see it: by its codec, without its secrets."""

import json
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from windlass.codec import JSON
from windlass.config.hidden import hidden, hidden_payload
from windlass.config.masked import sounds_secret
from windlass.core.errors import DecodeError
from windlass.core.job import Job
from windlass.handlers.secret_paths import HEADER, read

TOO_DEEP: Final = "(nested too deeply to be shown)"
UNREADABLE: Final = "(not shown: it is like JSON with a secret in it, and cannot be read as JSON)"
_MARK: Final = b"\xef\xbb\xbf"
"""What some programs write before a text, to say that it is UTF-8."""


class Carried(NamedTuple):
    """A value, or the bytes where there is none to be read."""

    value: object
    data: bytes | None = None


def payload_of(job: Job, secrets: Collection[str] = ()) -> Carried:
    """Return the payload of a job; `secrets` are paths of what is hidden beside those that are stored with it."""
    further = read(secrets)
    tells = bool(further) or HEADER in job.headers
    return _carried(job.payload, job.codec, lambda value: hidden_payload(value, job.headers, further), tells=tells)


def result_of(job: Job) -> Carried:
    """Return what a job returned; None where there is nothing."""
    return Carried(None) if job.result is None else _carried(job.result, job.result_codec, hidden)


def is_structured(data: bytes) -> bool:
    """Whether bytes look like a JSON object or list, whatever their maker calls them."""
    return data.removeprefix(_MARK).lstrip().startswith((b"{", b"["))


def may_hold_secrets(data: bytes) -> bool:
    """Whether bytes have a name somewhere that sounds secret, or characters written by number, which may be one."""
    return b"\\u" in data or sounds_secret(data.decode("latin-1"))


def in_text(carried: Carried, indent: int | None = None) -> str:
    """Return what is carried as text; bytes as their number and hexadecimal digits."""
    value, data = carried
    if data is not None:
        return f"{len(data):,} bytes: {data.hex(' ')}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)


def _carried(data: bytes, codec: str | None, hide: Callable[[object], object], *, tells: bool = False) -> Carried:
    """Return a payload or a result as a value without its secrets, or as bytes where it is none.

    `tells` says that its job tells of secrets in it. Bytes that a caller wrote as JSON are read too: a password in them
    is none the less one.
    """
    try:
        shown = hide(JSON.decode(data))
    except DecodeError as error:
        # what could not be read to its end may hide a secret there
        return Carried(TOO_DEEP) if isinstance(error.__cause__, RecursionError) else _unread(data, tells=tells)
    except RecursionError:
        return Carried(TOO_DEEP)
    # a text, a number or null that no codec wrote is taken as it stands
    is_value = codec == JSON.name or is_structured(data)
    return Carried(shown) if is_value else _plain(data)


def _unread(data: bytes, *, tells: bool) -> Carried:
    # several lines of JSON, a number that JSON has not, half a character: a password in them is none the less one
    is_suspect = tells or (is_structured(data) and may_hold_secrets(data))
    return Carried(UNREADABLE) if is_suspect else _plain(data)


def _plain(data: bytes) -> Carried:
    try:
        return Carried(data.decode())
    except UnicodeDecodeError:
        return Carried(None, data)
