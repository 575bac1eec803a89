"""Settings of a queue and of a whole client, and which of them holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import TypeVar

from windlass.core.duration import Duration, duration
from windlass.core.errors import InvalidValue
from windlass.core.job import PRIORITY_NORMAL
from windlass.core.names import MAX_PAYLOAD, check_max_attempts, check_name, check_priority
from windlass.core.retention import Keep, Retention
from windlass.core.retry import Exponential, RetryPolicy, RetryRule

T = TypeVar("T")


class Unset(Enum):
    """Marks a setting that is taken from one level up; None has a meaning of its own for some."""

    UNSET = "unset"

    def __repr__(self) -> str:
        """Read well in signatures."""
        return "UNSET"


UNSET = Unset.UNSET


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings of one queue; what is left out is taken from the client's."""

    max_attempts: int | Unset = UNSET
    lease: Duration | Unset = UNSET
    priority: int | Unset = UNSET
    retry: RetryRule | Unset = UNSET
    keep_succeeded: Duration | Unset | None = UNSET
    keep_dead: Duration | Unset | None = UNSET
    keep_cancelled: Duration | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings that hold for one queue, checked."""

    max_attempts: int
    lease: timedelta
    priority: int
    retry: RetryRule
    keep: Keep


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a client, checked."""

    default: Effective
    queues: Mapping[str, Effective] = field(default_factory=dict[str, Effective])
    max_payload: int = MAX_PAYLOAD
    keep_max: int | None = None

    def of(self, queue: str) -> Effective:
        """Return what holds for `queue`."""
        return self.queues.get(queue, self.default)

    @property
    def retention(self) -> Retention:
        """Return how long finished records stay, by queue."""
        keeps = {name: settings.keep for name, settings in self.queues.items()}
        return Retention(self.default.keep, keeps, self.keep_max)


DEFAULT = Effective(3, timedelta(seconds=30), PRIORITY_NORMAL, Exponential(), Keep())


def resolve(
    given: QueueSettings,
    queues: Mapping[str, QueueSettings] | None = None,
    *,
    max_payload: int = MAX_PAYLOAD,
    keep_max: int | None = None,
) -> Settings:
    """Check what a caller gave and fill in the rest: per queue over client over default."""
    default = _over(DEFAULT, given)
    single = {check_name(name, "queue"): _over(default, _check_own(name, own)) for name, own in (queues or {}).items()}
    most = None if keep_max is None else _check_count(keep_max, "keep_max is a number of records, or None")
    return Settings(default, single, _check_count(max_payload, "max_payload is a number of bytes"), most)


def _check_own(name: str, settings: object) -> QueueSettings:
    if isinstance(settings, QueueSettings):
        return settings
    message = f"the settings of queue {name!r} are a QueueSettings(...), not {type(settings).__name__}"
    raise InvalidValue(message)


def _over(base: Effective, given: QueueSettings) -> Effective:
    return Effective(
        max_attempts=check_max_attempts(_pick(given.max_attempts, base.max_attempts)),
        lease=base.lease if isinstance(given.lease, Unset) else duration(given.lease, "lease"),
        priority=check_priority(_pick(given.priority, base.priority)),
        retry=_check_retry(_pick(given.retry, base.retry)),
        keep=Keep(
            succeeded=_kept(given.keep_succeeded, base.keep.succeeded, "keep_succeeded"),
            dead=_kept(given.keep_dead, base.keep.dead, "keep_dead"),
            cancelled=_kept(given.keep_cancelled, base.keep.cancelled, "keep_cancelled"),
        ),
    )


def _pick(given: T | Unset, base: T) -> T:
    return base if isinstance(given, Unset) else given


def _kept(given: Duration | Unset | None, base: timedelta | None, what: str) -> timedelta | None:
    if isinstance(given, Unset):
        return base
    return None if given is None else duration(given, what)


def _check_retry(rule: RetryRule) -> RetryRule:
    if isinstance(rule, RetryPolicy) or callable(rule):
        return rule
    message = f"retry is a policy or a function of (attempt, exception), not {rule!r}"
    raise InvalidValue(message)


def _check_count(given: object, what: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        message = f"{what}, not {given!r}"
        raise InvalidValue(message)
    return given
