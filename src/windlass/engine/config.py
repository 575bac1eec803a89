"""The settings of one server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, Final, Literal, Self, TypeAlias, TypedDict

from windlass.config.resolve import Resolved
from windlass.config.settings import EventLoop, find
from windlass.core.duration import Duration
from windlass.core.errors import InvalidValue
from windlass.core.retention import Retention
from windlass.core.settings import UNSET, Settings, Unset

Order: TypeAlias = Literal["weighted", "strict", "priority"]
JobLogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "off"]


class ServerSettings(TypedDict, total=False):
    """The settings of a server as keywords: those that `ServerConfig` takes."""

    concurrency: int
    processes: int
    threads: int | None
    queues: Mapping[str, int] | Sequence[str] | None
    order: Order
    poll_interval: Duration
    job_timeout: Duration | None
    shutdown_timeout: Duration
    rescue_interval: Duration
    heartbeat_interval: Duration
    dead_after: Duration
    schedules: bool
    services: bool
    prune_interval: Duration
    stop_on_error: bool
    job_log_level: JobLogLevel
    event_loop: EventLoop
    lease: Duration | Unset
    keep_succeeded: Duration | Unset | None
    keep_dead: Duration | Unset | None
    keep_cancelled: Duration | Unset | None
    keep_max: int | Unset | None


OF_APP: Final = frozenset({"lease", "keep_succeeded", "keep_dead", "keep_cancelled", "keep_max"})
"""Settings that a server takes from its app when it is given none."""

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ServerConfig:
    """The settings of one server, checked.

    Durations are given as a `timedelta` or a number of seconds and kept as a `timedelta`. `queues` is a sequence, or a
    mapping of queues to weights, and is kept as the mapping, in its order; None stands for all queues of the app.
    What is `UNSET` is taken from the app.

    >>> ServerConfig(concurrency=5, queues=["email", "default"]).queues
    {'email': 1, 'default': 1}
    """

    concurrency: int
    processes: int
    threads: int | None
    queues: Mapping[str, int] | None = field(hash=False)
    order: Order
    poll_interval: timedelta
    job_timeout: timedelta | None
    shutdown_timeout: timedelta
    rescue_interval: timedelta
    heartbeat_interval: timedelta
    dead_after: timedelta
    schedules: bool
    services: bool
    prune_interval: timedelta
    stop_on_error: bool
    job_log_level: JobLogLevel
    event_loop: EventLoop
    lease: timedelta | Unset
    keep_succeeded: timedelta | Unset | None
    keep_dead: timedelta | Unset | None
    keep_cancelled: timedelta | Unset | None
    keep_max: int | Unset | None

    def __init__(
        self,
        *,
        concurrency: int = 20,
        processes: int = 1,
        threads: int | None = None,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        order: Order = "weighted",
        poll_interval: Duration = _SECOND,
        job_timeout: Duration | None = 5 * _MINUTE,
        shutdown_timeout: Duration = 30 * _SECOND,
        rescue_interval: Duration = 5 * _SECOND,
        heartbeat_interval: Duration = 10 * _SECOND,
        dead_after: Duration = _MINUTE,
        schedules: bool = True,
        services: bool = True,
        prune_interval: Duration = _MINUTE,
        stop_on_error: bool = False,
        job_log_level: JobLogLevel = "info",
        event_loop: EventLoop = "auto",
        lease: Duration | Unset = UNSET,
        keep_succeeded: Duration | Unset | None = UNSET,
        keep_dead: Duration | Unset | None = UNSET,
        keep_cancelled: Duration | Unset | None = UNSET,
        keep_max: int | Unset | None = UNSET,
    ) -> None:
        """Refuse with `InvalidValue` what cannot mean anything."""
        given = dict(locals())
        for name in (each.name for each in fields(self)):
            of_app = given[name] is UNSET and name in OF_APP
            object.__setattr__(self, name, UNSET if of_app else find(name).check(given[name]))
        if self.dead_after <= self.heartbeat_interval:
            message = (
                f"dead_after, {self.dead_after}, must be longer than heartbeat_interval, {self.heartbeat_interval}: "
                "else a live server is shown as gone between two beats"
            )
            raise InvalidValue(message)

    def retention(self, settings: Settings) -> Retention:
        """Return which finished records stay on this server, whose app has `settings`."""
        kept = settings.retention
        given = {end: getattr(self, f"keep_{end}") for end in ("succeeded", "dead", "cancelled")}
        default = replace(kept.default, **{end: keep for end, keep in given.items() if keep is not UNSET})
        return Retention(default, kept.queues, kept.most if isinstance(self.keep_max, Unset) else self.keep_max)

    @classmethod
    def from_settings(cls, settings: Resolved) -> Self:
        """Return what was resolved; what is the app's and was given by nobody stays `UNSET`."""
        return cls(**settings.given(each.name for each in fields(cls)))

    def given(self) -> dict[str, Any]:
        """Return what differs from the defaults: what code says, for `windlass.config.resolve`."""
        plain = type(self)()
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(plain, name)}
