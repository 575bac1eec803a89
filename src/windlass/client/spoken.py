"""Times, counts and names as people say them."""

import difflib
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from windlass.core.job import Progress

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


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


def took(began: datetime, ended: datetime) -> str:
    """Return how long something took; of short times more than the seconds."""
    seconds = max(0.0, (ended - began).total_seconds())
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else length(ended - began)  # noqa: PLR2004 - a minute


def progress_text(progress: Progress) -> str:
    """Return how far a job says it is: `30/100 (30%) rows`."""
    done = amount(progress.done)
    if not progress.total:
        return f"{done} {progress.note or ''}".rstrip()
    share = max(0.0, min(1.0, progress.done / progress.total))
    return f"{done}/{amount(progress.total)} ({share:.0%}) {progress.note or ''}".rstrip()


def amount(number: float) -> str:
    """Return how much of something there is, as it was counted: `1,234,567`, `0.5`."""
    return f"{number:,.12g}"


def at_utc(at: datetime) -> str:
    """Return a time of the store, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, what: str) -> str:
    """Return a number with what it counts: `1 job`, `1,200 jobs`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return the question after a name that was probably meant, with a space before it; or nothing."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
