"""What scripts are asked for, packed: they take texts alone, so bytes are sent as if they were text."""

import struct
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec

from windlass.core.duration import to_micros
from windlass.core.filters import JobFilter
from windlass.core.job import Failure, Note, PreparedJob
from windlass.core.names import MAX_LOG_LINE, shortened
from windlass.core.requests import Settlement
from windlass.core.retention import Keep, Retention
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.unique import Hold
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.kit.records import in_utf8

Ask: TypeAlias = dict[str, Any]
"""What one script is asked for, by name."""

RAW: Final = ""
"""Stands for the kind of a job that has none."""
_ALL_OTHERS: Final = ""
_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE: Final = 60_000_000
_encode: Final = msgspec.msgpack.Encoder().encode
_text_of = struct.Struct(">BI").pack
_TEXT: Final = 0xDB
BARE: Final = 6
"""How much is written of a job that is ready at once and has nothing but a payload."""
_THEN: Final = 6
"""Where in a settlement the jobs stand that are enqueued with it."""


def pack(ask: Ask) -> bytes:
    """Return the one argument of a script."""
    return _encode(ask)


def as_text(value: bytes) -> msgspec.Raw:
    """Return bytes as the text that scripts take: they keep it as it is."""
    return msgspec.Raw(_text_of(_TEXT, len(value)) + value)


def packed_text(value: object) -> msgspec.Raw:
    """Return a value that scripts keep packed, and give back as it is."""
    return as_text(_encode(value))


def span(time: timedelta) -> int:
    """Return a span of time as scripts count it."""
    return time // _MICROSECOND


def moment(at: datetime | None) -> str | None:
    """Return a time as scripts keep it; as a number it would lose digits in the far future."""
    return None if at is None else str(to_micros(at))


def chosen_of(chosen: JobFilter) -> Ask:
    """Return which jobs are meant, as `parts/matching.lua` reads it."""
    others = {name: value for name, value in chosen.by_field().items() if name not in {"queue", "until"}}
    return {
        **others,
        "queues": None if chosen.queue is None else [chosen.queue],
        "state": None if chosen.state is None else str(chosen.state),
        "since": None if chosen.since is None else to_micros(chosen.since),
        "until_": None if chosen.until is None else to_micros(chosen.until),
    }


def jobs_of(jobs: Sequence[PreparedJob]) -> list[list[object]]:
    """Return jobs as `parts/enqueuing.lua` takes them."""
    return [_job(job) for job in jobs]


def _job(job: PreparedJob) -> list[object]:
    (
        job_id, queue, kind, payload, codec, headers, tenant, priority, max_attempts, run_at, delay, hold, kv,
        parent_id, schedule_id, limit_key,
    ) = job  # fmt: skip
    more = more_of(headers, tenant, parent_id, schedule_id, limit_key)
    written: list[object] = [job_id, queue, kind or RAW, packed_text((codec, payload)), priority, max_attempts]
    if run_at is None and delay is None and more is None and hold is None and not kv:
        return written
    return [
        *written,
        moment(run_at),
        None if delay is None else span(delay),
        more,
        None if hold is None else _hold(hold),
        kv_pairs(kv) if kv else None,
    ]


def more_of(headers: Mapping[str, str], *rest: str | None) -> msgspec.Raw | None:
    """Return the values of `replies.More`, which few jobs have, as they are kept."""
    return packed_text([dict(headers), *rest]) if headers or any(rest) else None


def _hold(hold: Hold) -> list[object]:
    return [
        hold.name,
        hold.key,
        hold.until,
        False if hold.hold_for is None else span(hold.hold_for),
        hold.on_conflict,
        hold.match_payload,
        as_text(hold.digest),
    ]


def kv_pairs(kv: Mapping[bytes, bytes | None] | None) -> list[list[object]]:
    """Return a caller's values as `parts/kv.lua` takes them."""
    return [[as_text(key), False if value is None else as_text(value)] for key, value in (kv or {}).items()]


def settlement_of(settlement: Settlement) -> list[object]:
    """Return a settlement as `settle.lua` takes it."""
    job_id, token, verdict, keep, then, kv = settlement
    written = [job_id, token, keep, *_verdict(verdict)]
    if then or kv:
        empty = [None] * (_THEN - len(written))
        written += [*empty, jobs_of(then) if then else None, kv_pairs(kv) if kv else None]
    return written


def _verdict(verdict: Verdict) -> list[object]:
    match verdict:
        case ToSucceeded(result, codec):
            return ["succeeded"] if result is None else ["succeeded", as_text(result), codec]
        case ToRetry(delay, failure):
            return ["retry", span(delay), failure_of(failure)]
        case ToDead(failure):
            return ["dead", failure_of(failure)]
        case ToSnoozed(delay):
            return ["snoozed", span(delay)]
        case ToReleased(started):
            return ["released", started]
        case ToCancelled(reason):
            return ["cancelled", in_utf8(reason)]


def failure_of(failure: Failure) -> list[str | None]:
    """Return a failure as it is kept, and what is shown of it."""
    message, kind, traceback, module = failure
    shown = (message, kind, traceback, failure.summary, module)
    return [None if text is None else in_utf8(text) for text in shown]


def note_of(note: Note) -> list[object]:
    """Return a note as `note.lua` takes it."""
    progress = None
    if note.progress is not None:
        done, total, said = note.progress
        progress = packed_text((done, total, None if said is None else in_utf8(said)))
    lines = [(in_utf8(level), in_utf8(shortened(text, MAX_LOG_LINE))) for level, text in note.lines]
    return [note.job_id, note.token, progress, lines]


def timing_of(timing: TimingCount) -> list[object]:
    """Return how long attempts took as `write_timings.lua` takes it."""
    minute, queue, kind, what, number, count = timing
    began = to_micros(minute)
    return [began - began % _MINUTE, f"{queue}|{kind}|{what}|{number}", count]


def names(values: Collection[str | None]) -> dict[str, bool]:
    """Return a set of names as scripts look into it."""
    return {value or RAW: True for value in values}


def kept(retention: Retention, state: State) -> dict[str, bool]:
    """Return by queue whether jobs that end in `state` are kept."""
    kept_in = {queue: retention.keeps(queue, state) for queue in retention.queues}
    return {_ALL_OTHERS: retention.keeps(_ALL_OTHERS, state), **kept_in}


def spans_kept(retention: Retention) -> dict[str, dict[str, int]]:
    """Return by queue how long the ends are kept, those that do not stay for ever."""
    kept_in = {queue: _spans(keep) for queue, keep in retention.queues.items()}
    return {_ALL_OTHERS: _spans(retention.default), **kept_in}


def _spans(keep: Keep) -> dict[str, int]:
    ends = {str(state): keep.for_state(state) for state in State if state.finished}
    return {state: span(time) for state, time in ends.items() if time is not None}


def schedule_fields(schedule: Schedule) -> dict[str, object]:
    """Return a schedule as it is kept, with False for what it does not have."""
    record = (
        in_utf8(schedule.rule),
        in_utf8(schedule.timezone),
        schedule.queue,
        schedule.kind,
        schedule.payload,
        schedule.codec,
        dict(schedule.headers),
        schedule.tenant,
        schedule.priority,
        schedule.max_attempts,
        schedule.catch_up,
    )
    return {
        "record": packed_text(record),
        "overlap": schedule.overlap,
        "declared": "1" if schedule.declared else False,
        "paused": "1" if schedule.paused else False,
        "next_run_at": moment(schedule.next_run_at) or False,
        "last_run_at": moment(schedule.last_run_at) or False,
        "last_job_id": schedule.last_job_id or False,
    }
