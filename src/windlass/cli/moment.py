"""A point in time as it is written on the command line."""

from datetime import UTC, datetime, timedelta
from typing import Final

import click

from windlass.config.forms import Span
from windlass.core.errors import InvalidValue
from windlass.system import SystemClock

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


def read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Read a time in ISO 8601 with its offset: without one it could mean any time zone."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value.strip())
    except ValueError:
        message = f"it is a time such as 2026-01-31T09:00:00+01:00, not {value[:40]!r}"
        raise click.BadParameter(message, ctx, param) from None
    if at.utcoffset() is None:
        text = at.isoformat()
        message = f"it has no time zone: write {text}Z for UTC, or with an offset {text}+01:00"
        raise click.BadParameter(message, ctx, param)
    try:
        at.astimezone(UTC)
    except OverflowError:
        message = f"{value.strip()} is outside of the years 1 to 9999 in UTC"
        raise click.BadParameter(message, ctx, param) from None
    return at


def read_past(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Read a time in ISO 8601, or how long ago it was: `30m`, `1h`, `7d`."""
    if value is None:
        return None
    try:
        ago = Span().read(value.strip(), "it")
    except InvalidValue:
        return read_moment(ctx, param, value)
    assert isinstance(ago, timedelta)  # noqa: S101 - what the form of a duration returns
    now = SystemClock().now()
    # longer ago than there are years: since ever
    return now - ago if ago < now - EARLIEST else EARLIEST
