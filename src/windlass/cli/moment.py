"""A point in time as it is written on the command line."""

from datetime import UTC, datetime

import click


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
