"""What a test expects to have been enqueued, and what it is told when it was not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Final, TypeAlias

import msgspec

from windlass.app.consumer import Consumer
from windlass.app.handle import Call
from windlass.app.handler import Handler
from windlass.codec import JSON, Encoded, plain
from windlass.core.errors import DecodeError, InvalidValue
from windlass.core.job import Job
from windlass.handlers.arguments import JsonArguments
from windlass.handlers.registered import Registered
from windlass.handlers.secret_paths import EACH, read

What: TypeAlias = Handler[..., Any] | Consumer[..., Any] | Call[Any] | str
"""A handler, a consumer, a call with all its arguments, or a kind."""

SHOWN: Final = 10
_MASK: Final = "***"
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Expected:
    """Jobs of one kind, or the raw jobs of one queue, with some of their arguments."""

    kind: str | None
    queue: str | None
    arguments: Mapping[str, object]
    known: Registered | None
    payload: bytes | None = None
    """All of the arguments, when there may be no others."""

    def matches(self, job: Job) -> bool:
        """Whether it is such a job."""
        return self._same_place(job) and self._equal(job) == len(self.arguments) and self._has_no_more(job)

    def nearness(self, job: Job) -> tuple[bool, int, bool]:
        """Return how near a job comes that does not match; more is nearer."""
        of_kind = job.kind == self.kind
        return of_kind, self._equal(job) if of_kind else 0, self.queue in (None, job.queue)

    def __str__(self) -> str:
        secret = _secret(self.known)
        shown = ", ".join(_shown(name, value, secret) for name, value in self.arguments.items())
        more = "" if self.payload is not None else ", ..." if shown else "..."
        name = "a raw job" if self.kind is None else self.kind
        return f"{name}({shown}{more})" + ("" if self.queue is None else f" in queue {self.queue!r}")

    def _same_place(self, job: Job) -> bool:
        return job.kind == self.kind and self.queue in (None, job.queue)

    def _equal(self, job: Job) -> int:
        """Return how many of the arguments are as expected."""
        if not self.arguments:
            return 0
        raw = _raw(job)
        decoded = _decoded(self.known, job)
        return sum(
            _same(value, decoded.get(name, msgspec.UNSET), raw.get(name, msgspec.UNSET))
            for name, value in self.arguments.items()
        )

    def _has_no_more(self, job: Job) -> bool:
        if self.payload is None or _raw(job) == self.arguments:
            return True
        # what is left out in one of them may be the default of the other
        whole = job._replace(payload=self.payload, codec=JSON.name)
        return bool(_decoded(self.known, job) == _decoded(self.known, whole))


def expected(
    handlers: Mapping[str, Registered],
    what: What,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    queue: str | None,
) -> Expected:
    """Return what is expected; raises `TypeError` for arguments that the handler does not have."""
    if isinstance(what, Call):
        return _of_call(handlers, what, args, kwargs, queue)
    if isinstance(what, Consumer):
        return _of_consumer(what, args, kwargs, queue)
    if isinstance(what, Handler):
        return Expected(what.kind, queue, _bound(what.registered, args, kwargs), what.registered)
    if not isinstance(what, str):
        message = f"a handler, a call or a kind is expected, not {what!r}"
        raise InvalidValue(message)
    known = handlers.get(what)
    return Expected(what, queue, _bound(known, args, kwargs) if known else _by_name(what, args, kwargs), known)


def told(wanted: Expected, jobs: Sequence[Job], handlers: Mapping[str, Registered]) -> str:
    """Return the jobs that there are, the nearest first, for the end of a message."""
    if not jobs:
        return "nothing was enqueued at all"
    nearest = sorted(jobs, key=wanted.nearness, reverse=True)
    lines = [f"  {described(job, handlers)}" for job in nearest[:SHOWN]]
    if len(nearest) > SHOWN:
        lines.append(f"  and {len(nearest) - SHOWN:,} more")
    return "\n".join(["enqueued were, the nearest first:", *lines])


def described(job: Job, handlers: Mapping[str, Registered]) -> str:
    """Return a job as a line for people; what is secret is masked."""
    if job.kind is None:
        what = f"a raw job({_cut(repr(job.payload))})"
    else:
        secret = _secret(handlers.get(job.kind))
        what = f"{job.kind}({', '.join(_shown(name, value, secret) for name, value in _raw(job).items())})"
    return f"{what} in queue {job.queue!r}, {job.state}"


def _of_call(
    handlers: Mapping[str, Registered],
    call: Call[Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    queue: str | None,
) -> Expected:
    if args or kwargs:
        message = f"{call!r} has its arguments already: give none beside it"
        raise TypeError(message)
    job = call.new_job()
    payload = job.payload.data if isinstance(job.payload, Encoded) else b"{}"
    known = handlers.get(job.kind or "")
    return Expected(job.kind, job.queue if queue is None else queue, msgspec.json.decode(payload), known, payload)


def _of_consumer(
    consumer: Consumer[..., Any], args: Sequence[object], kwargs: Mapping[str, object], queue: str | None
) -> Expected:
    if len(args) > 1 or kwargs:
        message = f"a raw job has a payload and no arguments: give that, or nothing, after {consumer!r}"
        raise TypeError(message)
    arguments = {"payload": args[0]} if args else {}
    return Expected(None, consumer.queue if queue is None else queue, arguments, consumer.registered)


def _bound(known: Registered, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments by name; those that are left out may be anything."""
    arguments = known.arguments
    if not isinstance(arguments, JsonArguments):
        return _by_name(known.kind or known.queue, args, kwargs)
    signature = arguments.signature
    taken = {name: each for name, each in signature.parameters.items() if name not in arguments.wants}
    by_position = [name for name, each in taken.items() if each.kind is not Parameter.KEYWORD_ONLY]
    if len(args) > len(by_position):
        message = f"{signature.name}() takes {len(by_position)} arguments by position, and {len(args)} were given"
        raise TypeError(message)
    bound = dict(zip(by_position, args, strict=False))
    for name, value in kwargs.items():
        if name in bound or (name not in taken and signature.extra is None):
            problem = "got two values for" if name in bound else "has no parameter"
            message = f"{signature.name}() {problem} {name!r}: it takes {', '.join(taken) or 'none'}"
            raise TypeError(message)
        bound[name] = value
    return bound


def _by_name(kind: str, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    if args:
        message = f"no handler of the app does {kind!r}: give its arguments by name"
        raise TypeError(message)
    return dict(kwargs)


def _raw(job: Job) -> dict[str, Any]:
    if job.kind is None:
        value = _json(job.payload) if job.codec == JSON.name else msgspec.UNSET
        return {"payload": job.payload if value is msgspec.UNSET else value}
    try:
        return msgspec.json.decode(job.payload or b"{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {"payload": job.payload}


def _json(data: bytes) -> Any:  # noqa: ANN401 - the JSON edge
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return msgspec.UNSET


def _decoded(known: Registered | None, job: Job) -> dict[str, Any]:
    """Return the arguments as the handler gets them."""
    if known is None or job.kind is None:
        return {"payload": job.payload} if job.kind is None else {}
    try:
        return known.arguments.decode(job)
    except DecodeError:
        return {}


def _same(value: object, decoded: object, raw: object) -> bool:
    if bool(decoded == value) or bool(raw == value):
        return True
    try:
        return bool(raw == msgspec.to_builtins(value, str_keys=True, enc_hook=plain))
    except (TypeError, ValueError):
        return False


def _secret(known: Registered | None) -> tuple[str, ...]:
    arguments = None if known is None else known.arguments
    return arguments.secret_fields if isinstance(arguments, JsonArguments) else ()


def _shown(name: str, value: object, secret: Sequence[str]) -> str:
    return f"{name}={_MASK if _is_secret(name, secret) else _cut(repr(value))}"


def _is_secret(name: str, secret: Sequence[str]) -> bool:
    """Whether an argument is secret, or something in it."""
    return any(path[0] in (name, EACH) for path in read(secret))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
