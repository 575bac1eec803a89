"""What a job carries, and what it returned, as people may see it: by its codec, without its secrets."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.codec import JSON
from windlass.config.hidden import hidden_in_json
from windlass.config.masked import sounds_secret
from windlass.core.job import Job
from windlass.handlers.secret_paths import HEADER, Path, read, secret_headers

TOO_DEEP: Final = "(nested too deeply to be shown)"
UNREADABLE: Final = "(not shown: it is like JSON with a secret in it, and cannot be read as JSON)"
_MARK: Final = b"\xef\xbb\xbf"
"""What some programs write before a text, to say that it is UTF-8."""


class Carried(NamedTuple):
    """A value, or the bytes where there is none to be read."""

    value: object
    data: bytes | None = None


def payload_of(job: Job, secrets: Collection[str] = (), *, most: int | None = None) -> Carried:
    """Return the payload of a job; `secrets` are paths of what is hidden beside those that are stored with it.

    With `most` it is cut to its beginning, of at least so many characters where there are more: the rest is not looked
    at for secrets, and takes no time.
    """
    return _carried(job.payload, job.codec, secret_headers(job.headers, job.damage), read(secrets), most)


def result_of(job: Job, *, most: int | None = None) -> Carried:
    """Return what a job returned; None where there is nothing. `most` cuts as in `payload_of`."""
    return Carried(None) if job.result is None else _carried(job.result, job.result_codec, {}, (), most)


def is_structured(data: bytes) -> bool:
    """Whether bytes look like a JSON object or list, whatever their maker calls them."""
    return data.removeprefix(_MARK).lstrip().startswith((b"{", b"["))


def may_hold_secrets(data: bytes) -> bool:
    """Whether bytes have a name somewhere that sounds secret, or characters written by number, which may be one."""
    return b"\\u" in data or sounds_secret(data.decode(errors="replace"))


def in_text(carried: Carried, indent: int | None = None) -> str:
    """Return what is carried as text; bytes as their number and hexadecimal digits."""
    value, data = carried
    if data is not None:
        return f"{len(data):,} bytes: {data.hex(' ')}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)


def _carried(
    data: bytes, codec: str | None, headers: Mapping[str, str], further: Sequence[Path], most: int | None
) -> Carried:
    """Return a payload or a result as a value without its secrets, or as bytes where it is none.

    `headers` and `further` paths tell of secrets in it. Bytes that a caller wrote as JSON are read too: a password in
    them is none the less one.
    """
    try:
        shown = hidden_in_json(data, headers, further, most=most)
    except RecursionError:
        return Carried(TOO_DEEP)
    except (msgspec.MsgspecError, ValueError):
        # what could not be read to its end may hide a secret there
        return _unread(data, tells=bool(further) or HEADER in headers)
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
