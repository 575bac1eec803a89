"""Timestamps between the driver and Python, also those that no datetime can hold.

Postgres keeps times from 4713 BC to the year 294276, and both infinities. The driver's own codec raises for the first
and loses the time zone of the second, for all rows of an answer at once. Here such a time becomes `TOO_EARLY` or
`TOO_LATE`, which compare like any other time and are recognised by their identity.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

TOO_EARLY: Final = datetime.min.replace(tzinfo=UTC)
"""A stored time before the year 1, minus infinity included; written as minus infinity."""
TOO_LATE: Final = datetime.max.replace(tzinfo=UTC)
"""A stored time after the year 9999, infinity included; written as infinity."""
_OUT_OF_RANGE: Final = {id(TOO_EARLY): "is before the year 1", id(TOO_LATE): "is after the year 9999"}
_ZERO: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = (TOO_EARLY - _ZERO) // _MICROSECOND
_LAST: Final = (TOO_LATE - _ZERO) // _MICROSECOND
_INFINITY: Final = 2**63 - 1


async def read_any_timestamp(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Let no timestamp that `connection` receives fail the statement that selected it."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_encode, decoder=_decode, format="tuple"
    )


def out_of_range(at: datetime | None) -> str | None:
    """Return why a stored time cannot be read; None for a time that can."""
    return _OUT_OF_RANGE.get(id(at))


def _decode(stored: tuple[int]) -> datetime:
    micros = stored[0]
    if _FIRST <= micros <= _LAST:
        return _ZERO + timedelta(0, 0, micros)
    return TOO_EARLY if micros < _FIRST else TOO_LATE


def _encode(at: datetime) -> tuple[int]:
    if at is TOO_LATE:
        return (_INFINITY,)
    if at is TOO_EARLY:
        return (-_INFINITY - 1,)
    return ((at - _ZERO) // _MICROSECOND,)
