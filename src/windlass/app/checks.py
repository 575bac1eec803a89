"""What a decorator was given, checked at the decoration."""

from collections.abc import Sequence
from datetime import timedelta

from windlass.core.duration import Duration, duration
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.core.retry import RetryRule
from windlass.core.settings import Unset


def checked_timeout(timeout: Duration | Unset | None) -> timedelta | Unset | None:
    """Return how long an attempt may take; None for no limit."""
    if timeout is None or isinstance(timeout, Unset):
        return timeout
    return duration(timeout, "timeout")


def checked_retry(retry: RetryRule | Unset) -> RetryRule | Unset:
    """Return a retry policy, or a function that is one."""
    if isinstance(retry, Unset) or callable(retry) or callable(getattr(retry, "delay", None)):
        return retry
    message = f"retry is a policy or a function of (attempt, exception), not {retry!r}"
    raise InvalidValue(message)


def checked_aliases(aliases: Sequence[str]) -> tuple[str, ...]:
    """Return kinds that a handler had before."""
    if isinstance(aliases, str):
        message = f"aliases are a list of kinds, not {aliases!r}"
        raise InvalidValue(message)
    return tuple(check_name(alias, "kind") for alias in aliases)
