"""The view of the list of jobs, as its URL says it: what cannot be read is told beside its field."""

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from windlass.api.shape import Asked
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter

MOST_TEXT: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,18}", re.ASCII)


class JobsAsked(Asked, kw_only=True):
    """Which jobs, as text: what somebody typed is read with care for each field of the form."""

    state: str | None = None
    queue: str | None = None
    kind: str | None = None
    tenant: str | None = None
    error_type: str | None = None
    schedule_id: str | None = None
    parent_id: str | None = None
    since: str | None = None
    until: str | None = None
    text: str | None = None
    before: str | None = None


_PLAIN: Final = [name for name in JobsAsked.__struct_fields__ if name not in {"since", "until", "text", "before"}]
"""The fields that a filter has too, and that it checks by itself."""


class JobsWanted(NamedTuple):
    """What was understood: a filter without the text, the text, where to begin, and what is wrong by field."""

    chosen: JobFilter
    text: str | None
    before: int | None
    problems: dict[str, str]


def wanted(asked: JobsAsked) -> JobsWanted:
    """Return which jobs are meant, as far as it can be read."""
    problems: dict[str, str] = {}
    known: dict[str, Any] = {}
    for field in _PLAIN:
        _take(field, getattr(asked, field), known, problems)
    for field in ("since", "until"):
        if (text := getattr(asked, field)) is not None:
            _take_time(field, text, known, problems)
    if "since" in known and "until" in known and known["until"] <= known["since"]:
        problems["until"] = "it is not later than the beginning: no job can match"
    if asked.text is not None and len(asked.text) > MOST_TEXT:
        problems["text"] = f"it has {len(asked.text):,} characters: look for {MOST_TEXT} at most"
    before = None
    if asked.before is not None:
        if _NUMBER.fullmatch(asked.before):
            before = int(asked.before)
        else:
            problems["before"] = f"before is the number that a list told, not {asked.before[:40]!r}"
    return JobsWanted(JobFilter(**known), asked.text, before, problems)


def in_form(at: datetime | None) -> str:
    """Return a time as a form takes it: in UTC, without a zone, with seconds where it has some."""
    if at is None:
        return ""
    shown = at.astimezone(UTC).replace(tzinfo=None)
    return shown.isoformat(timespec="minutes" if shown.second == 0 else "seconds")


def _take(field: str, value: str | None, known: dict[str, Any], problems: dict[str, str]) -> None:
    if value is None:
        return
    given: dict[str, Any] = {field: value}
    try:
        JobFilter(**given)
    except InvalidValue as error:
        problems[field] = str(error)
    else:
        known |= given


def _take_time(field: str, text: str, known: dict[str, Any], problems: dict[str, str]) -> None:
    try:
        at = datetime.fromisoformat(text)
        # a form that no script helps says no zone
        known[field] = moment(at.replace(tzinfo=UTC) if at.utcoffset() is None else at, field)
    except InvalidValue as error:
        problems[field] = str(error)
    except ValueError:
        problems[field] = f"a time is written as 2026-01-31T09:00, not {text[:40]!r}"
