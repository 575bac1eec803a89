"""Which jobs an operator means."""

from dataclasses import dataclass
from datetime import datetime

from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.core.states import State


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Jobs that match everything that is given.

    `since` and `until` bound `created_at`, `until` not included; `error` is found anywhere in the last error; `text`
    anywhere in id, kind, unique key, tenant or last error.
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

    def __post_init__(self) -> None:
        """Refuse what cannot match anything; bring state and times to one form."""
        for what in ("queue", "kind", "tenant", "schedule_id"):
            if (name := getattr(self, what)) is not None:
                check_name(name, what)
        for what in ("since", "until"):
            if (at := getattr(self, what)) is not None:
                object.__setattr__(self, what, moment(at, what))
        if self.state is not None:
            object.__setattr__(self, "state", _state(self.state))


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        message = f"state is one of {', '.join(State)}, not {value!r}"
        raise InvalidValue(message) from None
