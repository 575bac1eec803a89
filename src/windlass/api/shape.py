"""What the shapes of the API have in common."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias

import msgspec

from windlass.core.duration import LONGEST

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""ISO 8601, with an offset."""
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LONGEST.total_seconds())]
Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, extra_json_schema={"pattern": "^[A-Za-z0-9_.:/@#-]{1,200}$"})
]
"""Letters, digits and `_ - . : / @ #`: the records of `core` say what is wrong with others."""
Id: TypeAlias = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$", description="A UUID.")
]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class Asked(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that a caller sends: a field that is not known is a mistake, and refused."""


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that the serving side answers: a newer one may tell more than is known here."""


class Base64(Told, kw_only=True):
    """Bytes that are not text."""

    base64: bytes


Blob: TypeAlias = str | Base64
"""Bytes: as text where they are UTF-8, else in base64."""


def blob(data: bytes) -> Blob:
    """Return bytes as the API writes them."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Base64(base64=data)


def data(written: Blob) -> bytes:
    """Return the bytes that a blob stands for."""
    return written.base64 if isinstance(written, Base64) else written.encode()


class KvPair(Told, kw_only=True):
    """A key of the caller's own key space and its value; null deletes, where it is written."""

    key: Blob
    value: Blob | None = None


def pairs(kv: Mapping[bytes, bytes | None]) -> list[KvPair]:
    """Return kv writes as the API writes them."""
    return [KvPair(key=blob(key), value=None if value is None else blob(value)) for key, value in kv.items()]


def kv_of(written: list[KvPair]) -> dict[bytes, bytes | None]:
    """Return kv writes as they were meant."""
    return {data(pair.key): None if pair.value is None else data(pair.value) for pair in written}


def seconds(duration: timedelta | None) -> float | None:
    """Return a duration as the API writes it."""
    return None if duration is None else duration.total_seconds()


def span(written: float | None) -> timedelta | None:
    """Return the duration that a number of seconds means."""
    return None if written is None else timedelta(seconds=written)
