"""How a handler ends its attempt otherwise than by returning or failing: it raises one of these, from any depth."""

from datetime import timedelta

from windlass.core.duration import Duration, duration
from windlass.core.errors import InvalidValue


class Signal(Exception):
    """The root of what a handler may raise to end its attempt as it wants."""


class Retry(Signal):
    """Fail the attempt and let the next one begin `after` this time; the job is dead when no attempt is left."""

    def __init__(self, reason: str = "the handler asked for another attempt", *, after: Duration = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after: timedelta = duration(after, "after")


class Snooze(Signal):
    """Put the job off by `delay`, at no cost of an attempt."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(f"put off by {delay}")
        self.delay: timedelta = duration(delay, "delay")


class Release(Signal):
    """Give the job back to its place, at no cost of an attempt."""


class Cancel(Signal):
    """End the job as cancelled; while the server stops it is given back instead."""

    def __init__(self, reason: str = "the handler cancelled it") -> None:
        if not isinstance(reason, str):
            message = f"a reason is a string, not {type(reason).__name__}"
            raise InvalidValue(message)
        super().__init__(reason)
        self.reason = reason


class PermanentFailure(Signal):
    """End the job as dead at once, whatever attempts are left."""

    def __init__(self, reason: str = "the handler gave up") -> None:
        if not isinstance(reason, str):
            message = f"a reason is a string, not {type(reason).__name__}"
            raise InvalidValue(message)
        super().__init__(reason)
        self.reason = reason
