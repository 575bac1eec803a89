"""Retry policies: pure functions from a failed attempt to the delay before the next one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from windlass.core.duration import LONGEST, ZERO, Duration, duration
from windlass.core.errors import InvalidValue

Jitter: TypeAlias = Literal["proportional", "full", "none"]
Exceptions: TypeAlias = tuple[type[BaseException], ...]
PROPORTION = 0.25


@runtime_checkable
class RetryPolicy(Protocol):
    """Decides when a failed attempt is followed by another."""

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:
        """Return the wait after `attempt` (from 1), or None to give up; `draw` is chance, from 0 to 1."""
        ...


RetryRule: TypeAlias = RetryPolicy | Callable[[int, BaseException | None], Duration | None]
"""A policy, or any function of (attempt, exception) to a delay; None gives up."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """Wait `base`, then `factor` times as long each time, at most `cap`, which holds after the jitter."""

    base: Duration = 1.0
    factor: float = 2.0
    cap: Duration = 300.0
    jitter: Jitter = "proportional"
    retry_on: Exceptions = (BaseException,)
    give_up_on: Exceptions = ()

    def __post_init__(self) -> None:
        """Refuse what cannot mean anything."""
        duration(self.base, "base")
        duration(self.cap, "cap")
        _check_jitter(self.jitter)
        if not self.factor >= 1:
            message = f"factor must be at least 1, not {self.factor!r}"
            raise InvalidValue(message)

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:
        """Return `base * factor ** (attempt - 1)`, jittered, then capped."""
        if not _retryable(error, self.retry_on, self.give_up_on):
            return None
        cap = duration(self.cap, "cap")
        plain = min(_grown(duration(self.base, "base"), self.factor, attempt), cap)
        return min(_jittered(plain, self.jitter, draw), cap)


@dataclass(frozen=True, slots=True)
class Linear:
    """Wait `base`, then `step` longer each time, at most `cap`, which holds after the jitter."""

    base: Duration = 1.0
    step: Duration = 1.0
    cap: Duration = 300.0
    jitter: Jitter = "proportional"
    retry_on: Exceptions = (BaseException,)
    give_up_on: Exceptions = ()

    def __post_init__(self) -> None:
        """Refuse what cannot mean anything."""
        for what in ("base", "step", "cap"):
            duration(getattr(self, what), what)
        _check_jitter(self.jitter)

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:
        """Return `base + step * (attempt - 1)`, jittered, then capped."""
        if not _retryable(error, self.retry_on, self.give_up_on):
            return None
        cap = duration(self.cap, "cap")
        steps = duration(self.step, "step").total_seconds() * (attempt - 1)
        plain = duration(self.base, "base") + timedelta(seconds=min(max(steps, 0.0), LONGEST.total_seconds()))
        return min(_jittered(min(plain, cap), self.jitter, draw), cap)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Wait the same time after every attempt."""

    wait: Duration = 1.0
    jitter: Jitter = "none"
    retry_on: Exceptions = (BaseException,)
    give_up_on: Exceptions = ()

    def __post_init__(self) -> None:
        """Refuse what cannot mean anything."""
        duration(self.wait, "wait")
        _check_jitter(self.jitter)

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:  # noqa: ARG002
        """Return `wait`, jittered."""
        if not _retryable(error, self.retry_on, self.give_up_on):
            return None
        return _jittered(duration(self.wait, "wait"), self.jitter, draw)


@dataclass(frozen=True, slots=True)
class NoRetry:
    """Give up after the first failed attempt."""

    def delay(self, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:  # noqa: ARG002
        """Return None: there is no other attempt."""
        return None


def retry_delay(rule: RetryRule, attempt: int, error: BaseException | None, draw: float) -> timedelta | None:
    """Return what `rule` says after `attempt`: a delay, or None to give up."""
    answer = rule.delay(attempt, error, draw) if isinstance(rule, RetryPolicy) else rule(attempt, error)
    return None if answer is None else duration(answer, "the delay of the retry function")


def _retryable(error: BaseException | None, retry_on: Exceptions, give_up_on: Exceptions) -> bool:
    if error is None:
        return True
    return isinstance(error, retry_on) and not isinstance(error, give_up_on)


def _grown(base: timedelta, factor: float, attempt: int) -> timedelta:
    if base == ZERO:
        return ZERO
    try:
        seconds = base.total_seconds() * factor ** (attempt - 1)
    except OverflowError:
        return LONGEST
    return timedelta(seconds=min(seconds, LONGEST.total_seconds()))


def _jittered(plain: timedelta, jitter: Jitter, draw: float) -> timedelta:
    match jitter:
        case "proportional":
            return plain * (1 - PROPORTION + 2 * PROPORTION * draw)
        case "full":
            return plain * draw
        case "none":
            return plain


def _check_jitter(jitter: object) -> None:
    if jitter not in ("proportional", "full", "none"):
        message = f"jitter is one of proportional, full, none, not {jitter!r}"
        raise InvalidValue(message)
