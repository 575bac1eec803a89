"""What the shapes of the API have in common."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias

import msgspec

from windlass.core.duration import LONGEST
from windlass.core.names import MAX_ATTEMPTS, MAX_HEADER, MAX_KEY, MAX_PRIORITY, MAX_SEARCH, MAX_VALUE

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""ISO 8601, with an offset."""
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LONGEST.total_seconds())]
NAME_PATTERN = "^[A-Za-z0-9_.:/@#-]{1,200}$"
Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, extra_json_schema={"pattern": NAME_PATTERN})
]
"""Letters, digits and `_ - . : / @ #`: the records of `core` say what is wrong with others."""
Id: TypeAlias = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$", description="A UUID.")
]
Priority: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_PRIORITY)]
Attempts: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_ATTEMPTS)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


def _bounded(least: int, most: int) -> msgspec.Meta:
    """Say in the schema how long a text is; the records of `core` say what is wrong with others.

    A schema counts characters, and the limit is one of bytes: a character has up to four of them in UTF-8.
    """
    by_bytes = [{"maxLength": most // 4}, {"pattern": "^[\\u0000-\\u007f]*$"}]
    return msgspec.Meta(extra_json_schema={"minLength": least, "maxLength": most, "anyOf": by_bytes})


def _bounded_bytes(least: int, most: int) -> msgspec.Meta:
    """Say in the schema how many characters of base64 there are."""
    return msgspec.Meta(extra_json_schema={"minLength": -(-least // 3) * 4, "maxLength": -(-most // 3) * 4})


HeaderText: TypeAlias = Annotated[str, _bounded(0, MAX_HEADER)]
HEADER_SCHEMA = msgspec.json.schema(HeaderText)
SearchText: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_SEARCH})]
"""A text that jobs are found by."""


class Asked(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that a caller sends: a field that is not known is a mistake, and refused."""


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that the serving side answers: a newer one may tell more than is known here."""


class Base64(Told, kw_only=True):
    """Bytes that are not text."""

    base64: bytes


class Base64Key(Base64, kw_only=True):
    """A key that is not text."""

    base64: Annotated[bytes, _bounded_bytes(1, MAX_KEY)]


class Base64Prefix(Base64, kw_only=True):
    """The beginning of keys that are not text."""

    base64: Annotated[bytes, _bounded_bytes(0, MAX_KEY)]


class Base64Value(Base64, kw_only=True):
    """A value that is not text."""

    base64: Annotated[bytes, _bounded_bytes(0, MAX_VALUE)]


Blob: TypeAlias = str | Base64
"""Bytes: as text where they are UTF-8, else in base64."""
Key: TypeAlias = Annotated[str, _bounded(1, MAX_KEY)] | Base64Key
KeyPrefix: TypeAlias = Annotated[str, _bounded(0, MAX_KEY)] | Base64Prefix
Value: TypeAlias = Annotated[str, _bounded(0, MAX_VALUE)] | Base64Value


def key_blob(key: bytes) -> Key:
    """Return a key as the API writes it."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return Base64Key(base64=key)


def prefix_blob(prefix: bytes) -> KeyPrefix:
    """Return the beginning of keys as the API writes it."""
    try:
        return prefix.decode()
    except UnicodeDecodeError:
        return Base64Prefix(base64=prefix)


def value_blob(value: bytes) -> Value:
    """Return a value as the API writes it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64Value(base64=value)


def data(written: Blob) -> bytes:
    """Return the bytes that a blob stands for."""
    return written.base64 if isinstance(written, Base64) else written.encode()


class KvPair(Told, kw_only=True):
    """A key of the caller's own key space and its value; null deletes, where it is written."""

    key: Key
    value: Value | None = None


def pairs(kv: Mapping[bytes, bytes | None]) -> list[KvPair]:
    """Return kv writes as the API writes them."""
    return [KvPair(key=key_blob(key), value=None if value is None else value_blob(value)) for key, value in kv.items()]


def kv_of(written: list[KvPair]) -> dict[bytes, bytes | None]:
    """Return kv writes as they were meant."""
    return {data(pair.key): None if pair.value is None else data(pair.value) for pair in written}


def seconds(duration: timedelta | None) -> float | None:
    """Return a duration as the API writes it."""
    return None if duration is None else duration.total_seconds()


def span(written: float | None) -> timedelta | None:
    """Return the duration that a number of seconds means."""
    return None if written is None else timedelta(seconds=written)
