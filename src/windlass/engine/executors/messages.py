"""What a server and its child processes say to each other."""

from datetime import timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from windlass.core.job import Failure, Job, PreparedJob, Progress, Token
from windlass.core.verdict import GaveUp, GivenBack, Outcome, PutOff, Raised, Returned, Stopped


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Run an attempt: `function` is the path of the handler in `module`."""

    run: int
    module: str
    function: str
    kind: str | None
    job: Job
    token: Token
    lease: float
    draw: float
    """The chance in the delay of a retry."""
    reason: str | None
    """Why the attempt should stop, if it was told before it began."""
    log_from: int
    """The level from which on the standard log is kept with the job."""


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Tell an attempt to stop."""

    run: int
    reason: str


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The child has come up."""


class Noted(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """A log line, or how far the attempt is."""

    run: int
    progress: Progress | None = None
    level: str = ""
    text: str = ""


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """An attempt has ended."""

    run: int
    how: Literal["returned", "raised", "gave up", "put off", "given back", "stopped"]
    failure: Failure = Failure("")
    delay: timedelta | None = None
    reason: str = ""
    result: bytes | None = None
    codec: str | None = None
    next_jobs: list[PreparedJob] | None = None
    kv_writes: dict[bytes, bytes | None] | None = None
    settled: bool = False


ToChild: TypeAlias = Begin | Tell
ToParent: TypeAlias = Ready | Noted | Ended

encode: Final = msgspec.msgpack.Encoder().encode
decode_to_child: Final = msgspec.msgpack.Decoder[ToChild](ToChild).decode
decode_to_parent: Final = msgspec.msgpack.Decoder[ToParent](ToParent).decode


def told(run: int, outcome: Outcome) -> Ended:
    """Return the message that an attempt ended by `outcome`; an exception itself stays behind."""
    match outcome:
        case Returned(result, codec):
            return Ended(run, "returned", result=result, codec=codec)
        case Raised(failure, _, delay):
            return Ended(run, "raised", failure, delay)
        case GaveUp(failure):
            return Ended(run, "gave up", failure)
        case PutOff(delay):
            return Ended(run, "put off", delay=delay)
        case GivenBack():
            return Ended(run, "given back")
        case Stopped(reason):
            return Ended(run, "stopped", reason=reason)


def outcome(ended: Ended) -> Outcome:
    """Return the outcome in a message."""
    match ended.how:
        case "returned":
            return Returned(ended.result, ended.codec)
        case "raised":
            return Raised(ended.failure, delay=ended.delay)
        case "gave up":
            return GaveUp(ended.failure)
        case "put off":
            return PutOff(ended.delay or timedelta())
        case "given back":
            return GivenBack(started=True)
        case "stopped":
            return Stopped(ended.reason)
