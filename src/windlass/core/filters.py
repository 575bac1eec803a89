"""Which jobs an operator means."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.ids import job_id
from windlass.core.job import Job
from windlass.core.names import check_name, check_text, check_utf8
from windlass.core.states import State


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Jobs that match everything that is given.

    `since` and `until` bound `created_at`, `until` not included; `error` is found anywhere in the last error; `text`
    anywhere in id, kind, unique key, tenant or last error; `payload_text` anywhere in the bytes of the payload, which
    no index helps with. `error_type` is what the last error begins with, up to a colon.
    """

    queue: str | None = None
    kind: str | None = None
    state: State | str | None = None
    tenant: str | None = None
    schedule_id: str | None = None
    error: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    parent_id: str | None = None
    unique_key: str | None = None
    error_type: str | None = None
    payload_text: str | None = None

    def by_field(self) -> dict[str, Any]:
        """Return what was given, by field; None for what was not."""
        return {name: getattr(self, name) for name in FILTER_FIELDS}

    def __post_init__(self) -> None:
        """Refuse what cannot match anything; bring state, times and ids to one form."""
        for what in ("queue", "kind", "tenant", "schedule_id", "unique_key"):
            if (name := getattr(self, what)) is not None:
                check_name(name, what)
        for what in ("error", "text"):
            if (text := getattr(self, what)) is not None:
                check_utf8(text, what)
        for what in ("error_type", "payload_text"):
            if (text := getattr(self, what)) is not None:
                check_text(text, what)
        for what in ("since", "until"):
            if (at := getattr(self, what)) is not None:
                object.__setattr__(self, what, moment(at, what))
        if self.state is not None:
            object.__setattr__(self, "state", _state(self.state))
        if self.parent_id is not None:
            object.__setattr__(self, "parent_id", job_id(self.parent_id))

    def matches(self, job: Job) -> bool:
        """Whether a job matches."""
        return (
            self.queue in {None, job.queue}
            and self.kind in {None, job.kind}
            and self.state in {None, job.state}
            and self.tenant in {None, job.tenant}
            and self.schedule_id in {None, job.schedule_id}
            and self.parent_id in {None, job.parent_id}
            and self.unique_key in {None, job.unique_key}
            and (self.since is None or self.since <= job.created_at)
            and (self.until is None or job.created_at < self.until)
            and (self.error is None or self.error in (job.last_error or ""))
            and (self.error_type is None or _is_of_type(job.last_error, self.error_type))
            and (self.text is None or _mentions(job, self.text))
            and (self.payload_text is None or self.payload_text.encode() in job.payload)
        )


def _is_of_type(error: str | None, error_type: str) -> bool:
    return error is not None and (error == error_type or error.startswith(f"{error_type}:"))


def _mentions(job: Job, text: str) -> bool:
    shown = (job.id, job.kind, job.unique_key, job.tenant, job.last_error)
    return any(text in part for part in shown if part is not None)


FILTER_FIELDS: Final = tuple(each.name for each in fields(JobFilter))


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        message = f"state is one of {', '.join(State)}, not {value!r}"
        raise InvalidValue(message) from None
