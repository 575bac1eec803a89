"""The table of settings: what each means, how it is read, and what holds when nobody says anything."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias, get_args

from windlass.config.forms import URL, Address, Choice, Form, Name, OrNone, Queues, Span, Switch, Text, Whole
from windlass.core.errors import InvalidValue
from windlass.core.names import MAX_PAYLOAD
from windlass.core.settings import DEFAULT

PREFIX: Final = "WINDLASS_"
ORDERS: Final = ("weighted", "strict", "priority")
LOG_FORMATS: Final = ("human", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
JOB_LOG_LEVELS: Final = (*LOG_LEVELS, "off")


EventLoop: TypeAlias = Literal["auto", "asyncio", "uvloop"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `per_queue` says whether a single queue may have a value of its own."""

    name: str
    form: Form
    default: object
    meaning: str
    per_queue: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that it is read from."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The flag that gives it on the command line."""
        return "--" + self.name.replace("_", "-")

    def check(self, value: object) -> object:
        """Return a value that code gave, as it is kept; raises `InvalidValue`."""
        return self.form.check(value, self.name)

    def read(self, value: object) -> object:
        """Return a value from outside of the code: text is read, whatever else TOML knows is checked."""
        return self.form.read(value.strip(), self.name) if isinstance(value, str) else self.check(value)

    def show(self, value: object) -> str:
        """Return `value` for people to see, without what is secret in it."""
        return "none" if value is None else self.form.show(value)


_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_INTERVAL: Final = Span(zero=False)

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("url", URL(), None, "the store"),
    Setting("name", Name(), None, "what the process is called among the servers"),
    Setting("max_attempts", Whole(1), DEFAULT.max_attempts, "how many attempts a job may be charged", per_queue=True),
    Setting("lease", Span(), DEFAULT.lease, "how long a claim holds unless it is renewed", per_queue=True),
    Setting("priority", Whole(), DEFAULT.priority, "of a job that says nothing; lower is more urgent", per_queue=True),
    Setting(
        "keep_succeeded",
        OrNone(Span()),
        DEFAULT.keep.succeeded,
        "how long the record of a succeeded job stays",
        per_queue=True,
    ),
    Setting("keep_dead", OrNone(Span()), DEFAULT.keep.dead, "the same for dead jobs", per_queue=True),
    Setting("keep_cancelled", OrNone(Span()), DEFAULT.keep.cancelled, "the same for cancelled jobs", per_queue=True),
    Setting(
        "keep_max",
        OrNone(Whole()),
        None,
        "the most records that stay, for each queue and end; on Redis 100,000 unless it is given",
    ),
    Setting("max_payload", Whole(), MAX_PAYLOAD, "the most bytes of a payload or a result"),
    Setting("poll_interval", _INTERVAL, _SECOND, "how often to look where no notification comes"),
    Setting("concurrency", Whole(), 20, "jobs at once in each process; 0 runs the services alone"),
    Setting("processes", Whole(1, most=1_000), 1, "how many processes work, at most 1,000"),
    Setting("threads", OrNone(Whole(1)), None, "the most threads of a process for handlers; none: as needed"),
    Setting("queues", OrNone(Queues()), None, "the queues to work, with weights if they differ; none: all of the app"),
    Setting(
        "order",
        Choice(ORDERS),
        "weighted",
        "how queues take turns: weighted, strict (as listed) or priority (over all); the last two may starve a queue",
    ),
    Setting(
        "job_timeout", OrNone(_INTERVAL), 5 * _MINUTE, "how long an attempt may take unless its job says otherwise"
    ),
    Setting("shutdown_timeout", Span(), 30 * _SECOND, "how long running jobs may go on after a stop was asked for"),
    Setting("rescue_interval", _INTERVAL, 5 * _SECOND, "how often jobs whose lease ran out are taken back"),
    Setting("heartbeat_interval", _INTERVAL, 10 * _SECOND, "how often a server says that it is alive"),
    Setting("dead_after", _INTERVAL, _MINUTE, "after which silence a server is shown as gone"),
    Setting("schedules", Switch(), default=True, meaning="whether due schedules make their jobs here"),
    Setting("services", Switch(), default=True, meaning="whether rescue, promotion and pruning run here"),
    Setting("prune_interval", _INTERVAL, _MINUTE, "how often records past their retention are deleted"),
    Setting(
        "stop_on_error",
        Switch(),
        default=False,
        meaning="whether a server stops at an error of the store, and does not go on",
    ),
    Setting(
        "job_log_level",
        Choice(JOB_LOG_LEVELS),
        "info",
        "from which level on what a handler logs is kept with its job: debug, info, warning, error or off",
    ),
    Setting(
        "event_loop",
        Choice(get_args(EventLoop)),
        "auto",
        "what `windlass worker`, `serve` and `Server.run` run on: auto (uvloop where it is there), asyncio or uvloop",
    ),
    Setting("app", OrNone(Text()), None, "the app of the command line, as `tasks:app`"),
    Setting("log_format", Choice(LOG_FORMATS), "human", "how `windlass worker` writes its log: human or json"),
    Setting("log_level", Choice(LOG_LEVELS), "info", "from which level on it writes: debug, info, warning or error"),
    Setting("metrics", OrNone(Address()), None, "where `windlass worker` serves /metrics and /health: [HOST:]PORT"),
)

BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}
PER_QUEUE: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS if setting.per_queue}

CODE_ALONE: Final[Mapping[str, str]] = {
    "eager": "it is given in code alone, App(..., eager=True)",
    "retry": "it is given in code alone, App(..., retry=Exponential(base=5))",
}
"""What nobody may turn on, or could not write, outside of the code, with what to do."""


def find(name: str, known: Mapping[str, Setting] = BY_NAME) -> Setting:
    """Return the setting of this name among those `known`; raise `InvalidValue` with what was probably meant."""
    if name in known:
        return known[name]
    message = f"there is no setting {name[:40]!r}: {_advice(name, known)}"
    raise InvalidValue(message)


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the one of the `known` names that was probably meant."""
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def _advice(name: str, known: Collection[str]) -> str:
    if name in CODE_ALONE:
        return CODE_ALONE[name]
    if name == "token":
        return f"a token does not belong in a file, it is read from {PREFIX}TOKEN"
    if name in BY_NAME:
        return f"a single queue has only {', '.join(known)}"
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
