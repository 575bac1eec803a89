"""Times for people: in a zone, and as a distance from now."""

from datetime import datetime, timedelta, tzinfo
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def shown_at(at: datetime, zone: tzinfo) -> str:
    """Return a time in a zone, with its offset: around a change of the clocks the hour alone says too little."""
    local = at.astimezone(zone)
    offset = f"{local:%z}"
    return f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


def distance(at: datetime, now: datetime) -> str:
    """Return how far `at` is from `now`: `in 4 min`, `3 h ago`, `now`."""
    seconds = round((at - now).total_seconds())
    if seconds == 0:
        return "now"
    text = length(timedelta(seconds=abs(seconds)))
    return f"in {text}" if seconds > 0 else f"{text} ago"


def length(span: timedelta) -> str:
    """Return a duration in one unit, or in two where one would hide much: `4 min`, `1 h 20 min`."""
    seconds = round(span.total_seconds())
    for (unit, size), below in zip(_UNITS, [*_UNITS[1:], None], strict=True):
        count, rest = divmod(seconds, size)
        if not count:
            continue
        # of one or two hours the minutes count, of seven they do not
        if below is not None and count < 3 and rest >= below[1]:  # noqa: PLR2004
            return f"{count} {unit} {rest // below[1]} {below[0]}"
        return f"{count} {unit}"
    return "0 s"
