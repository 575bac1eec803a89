"""Damaged records, read field by field.

A store decodes sound records in one go. It falls back to `read_damaged_job` or `read_damaged_schedule` for a record
that does not decode, so that one damaged field hides no other field and no other record. What is read with many others
and is no use without its fields (servers, entries of the audit, counts) is left out by `read_each`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

import msgspec

from windlass.core.duration import EPOCH, from_micros
from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.ids import JobId, job_id
from windlass.core.job import FIELDS_WITH_SECRETS, JOB_FIELDS, NO_HEADERS, Delivery, Job, LogLine, Progress, Written
from windlass.core.names import check_name
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.core.states import State
from windlass.kit.records import STATES

R = TypeVar("R")
T = TypeVar("T")

DECODE_ERRORS: Final = (ValueError, TypeError, LookupError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What the decoder of a record raises that is damaged."""
MOST_LOGGED: Final = 10_000
DAMAGED: Final = "DamagedRecord"
"""The type of the last error of a job that was set aside."""
_MAX_SHOWN: Final = 60
"""Characters of a stored value that a reason quotes."""
_MAX_INTEGER: Final = 2**63 - 1
_MAX_REVISION: Final = 2**53
NO_NAME: Final = "-"
"""The stand-in for a name of a schedule."""


class Unreadable(NamedTuple):
    """A stored value that the driver or the store could not decode, and the reason."""

    why: str


MISSING: Final = Unreadable("is missing")


class _BadFieldError(ValueError):
    """A stored value that is not one of its field; the text follows the field's name."""


class _Field(NamedTuple):
    """A field of a job: the function that reads its stored value, and the stand-in for an unreadable one."""

    read: Callable[[Any], object]
    stand_in: object
    is_required: bool = True


def read_damaged_job(stored: Mapping[str, object]) -> Job:
    """Return the job whose stored values, by the names of `Job`, are given; its `damage` names those that do not read.

    A time may be microseconds since the epoch or a datetime, headers and progress JSON text or decoded values, a state
    its name. A required field that is not among `stored` is missing; another one is empty.
    """
    values, damage = _read_fields(_FIELDS, stored)
    return Job(**values, damage=damage)


def read_damaged_schedule(stored: Mapping[str, object]) -> Schedule:
    """Return the schedule whose stored values, by the names of `Schedule`, are given; as `read_damaged_job`."""
    values, damage = _read_fields(_SCHEDULE_FIELDS, stored)
    return Schedule(**values, damage=damage)


def is_sound(schedule: Schedule) -> bool:
    """Whether the names, choices and numbers of a schedule that was decoded are such as one is written with."""
    names = (schedule.id, schedule.queue, schedule.codec, schedule.kind, schedule.tenant)
    try:
        for name in names:
            if name is not None:
                check_name(name, "name")
        if schedule.last_job_id is not None:
            job_id(schedule.last_job_id)
    except InvalidValue:
        return False
    known = schedule.overlap in get_args(Overlap) and schedule.catch_up in get_args(CatchUp)
    return known and 0 <= schedule.revision <= _MAX_REVISION and bool(schedule.rule and schedule.timezone)


def read_each(rows: Iterable[R], read: Callable[[R], T], on_damage: Callable[[str], None]) -> list[T]:
    """Return what each row reads as; one that does not is left out, and `on_damage` is called with the reason.

    A row that holds an `Unreadable` does not read.
    """
    found: list[T] = []
    for row in rows:
        try:
            _check_readable(row)
            found.append(read(row))
        except DECODE_ERRORS as error:
            on_damage(f"{shown(row)}: {error}")
    return found


def _check_readable(row: object) -> None:
    values = cast("Iterable[object]", row) if isinstance(row, (tuple, list)) else ()
    for value in values:
        if isinstance(value, Unreadable):
            raise _BadFieldError(f"a value {value.why}")


class DamageLog:
    """Logs each damaged record once, however often it is met."""

    def __init__(self, logger: logging.Logger) -> None:
        """Log errors by `logger`."""
        self._logger = logger
        self._logged: dict[tuple[str, str], None] = {}

    def log(self, message: str, why: str) -> None:
        """Log `message`, which has one `%s` for `why`."""
        if (message, why) in self._logged:
            return
        self._logged[message, why] = None
        self._logger.error(message, why)
        while len(self._logged) > MOST_LOGGED:
            del self._logged[next(iter(self._logged))]


def _read_fields(fields: Mapping[str, _Field], stored: Mapping[str, object]) -> tuple[dict[str, Any], str | None]:
    values: dict[str, Any] = {}
    damage: list[str] = []
    for name, field in fields.items():
        value = stored.get(name, MISSING if field.is_required else None)
        try:
            # an empty optional field has its stand-in: nothing
            values[name] = field.stand_in if value is None and not field.is_required else _read(field, value)
        except _BadFieldError as error:
            values[name] = field.stand_in
            damage.append(f"{name} {_without_value(name, str(error))}")
    return values, "; ".join(damage) or None


def _without_value(name: str, why: str) -> str:
    """Return the reason without the value that it quotes, for a field that may hold a secret.

    A reason is read by callers who may not see the value.
    """
    return why.partition(": ")[0] if name in FIELDS_WITH_SECRETS else why


def _read(field: _Field, value: object) -> object:
    if isinstance(value, Unreadable):
        raise _BadFieldError(value.why)
    return field.read(value)


def dead_reason(damage: str) -> str:
    """Return the last error of a job that a claim set aside because of `damage`."""
    return (
        f"{DAMAGED}: {damage}. No worker can run this job. Its stored bytes are unchanged: repair "
        "them and retry the job, or delete it"
    )


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _BadFieldError(f"is not an integer: {shown(value)}")
    if abs(value) > _MAX_INTEGER:
        raise _BadFieldError(f"is out of range: {shown(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _BadFieldError(f"is not a text: {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _BadFieldError("is not UTF-8") from None
    return value


def _name(value: object) -> str:
    text = _text(value)
    if not text:
        raise _BadFieldError("is empty")
    return text


def _job_id(value: object) -> JobId:
    return JobId(_name(value))


def _checked_name(value: object) -> str:
    try:
        return check_name(_name(value), "name")
    except InvalidName:
        raise _BadFieldError(f"is no name: {shown(value)}") from None


def _uuid(value: object) -> JobId:
    try:
        return job_id(_text(value))
    except InvalidValue:
        raise _BadFieldError(f"is not a UUID: {shown(value)}") from None


def _revision(value: object) -> int:
    revision = _integer(value)
    if not 0 <= revision <= _MAX_REVISION:
        raise _BadFieldError(f"is out of range: {shown(value)}")
    return revision


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise _BadFieldError(f"is not bytes: {shown(value)}")
    return value


def _time(value: object) -> datetime:
    if isinstance(value, datetime):
        if value.utcoffset() != timedelta(0):
            raise _BadFieldError(f"is not a time in UTC: {shown(value)}")
        return value
    try:
        return from_micros(_integer(value))
    except OverflowError:
        raise _BadFieldError(f"is out of range: {shown(value)}") from None


def _boolean(value: object) -> bool:
    if not isinstance(value, int) or value not in (0, 1):
        raise _BadFieldError(f"is not a boolean: {shown(value)}")
    return bool(value)


def _state(value: object) -> State:
    state = STATES.get(value) if isinstance(value, str) else None
    if state is None:
        raise _BadFieldError(f"is no state: {shown(value)}")
    return state


def _headers(value: object) -> Mapping[str, str]:
    given = _decoded(value)
    if given is None:
        return NO_HEADERS
    if not isinstance(given, Mapping):
        raise _BadFieldError(f"is not an object of texts: {shown(value)}")
    items = cast("Mapping[object, object]", given)
    return {_text(key): _text(each) for key, each in items.items()}


def _progress(value: object) -> Progress:
    given = _decoded(value)
    try:
        return msgspec.convert(given, Progress)
    except msgspec.ValidationError:
        raise _BadFieldError(f"is not a progress: {shown(value)}") from None


def _catch_up(value: object) -> object:
    return _one_of(value, get_args(CatchUp))


def _overlap(value: object) -> object:
    return _one_of(value, get_args(Overlap))


def _one_of(value: object, names: tuple[str, ...]) -> object:
    if value not in names:
        raise _BadFieldError(f"is none of {', '.join(names)}: {shown(value)}")
    return value


def _records(value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise _BadFieldError(f"is not a list of records: {shown(value)}")
    return cast("tuple[object, ...]", value)


def _decoded(value: object) -> Any:  # noqa: ANN401 - whatever JSON can say
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _BadFieldError(f"is not JSON: {shown(value)}") from None


def shown(value: object) -> str:
    """Return a stored value as a reason quotes it: shortened, on one line."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


_BY_TYPE: Final[Mapping[Any, _Field]] = {
    int: _Field(_integer, 0),
    bool: _Field(_boolean, stand_in=False),
    str: _Field(_name, ""),
    bytes: _Field(_bytes, b""),
    datetime: _Field(_time, EPOCH),
    JobId: _Field(_job_id, JobId("")),
    State: _Field(_state, State.DEAD),
    str | None: _Field(_text, None, is_required=False),
    bytes | None: _Field(_bytes, None, is_required=False),
    datetime | None: _Field(_time, None, is_required=False),
    JobId | None: _Field(_job_id, None, is_required=False),
    Progress | None: _Field(_progress, None, is_required=False),
    Mapping[str, str]: _Field(_headers, NO_HEADERS, is_required=False),
    # the store has decoded these: their records differ from store to store
    tuple[Delivery, ...]: _Field(_records, (), is_required=False),
    tuple[LogLine, ...]: _Field(_records, (), is_required=False),
}
"""How the fields of a job are read, by their type."""

_FIELDS: Final = {field.name: _BY_TYPE[field.type] for field in JOB_FIELDS if field.written is not Written.READ} | {
    "codec": _Field(_name, "raw")
}

_SCHEDULE_FIELDS: Final = {
    "id": _Field(_checked_name, NO_NAME),
    "rule": _Field(_name, NO_NAME),
    "timezone": _Field(_name, "UTC"),
    "queue": _Field(_checked_name, NO_NAME),
    "kind": _Field(_checked_name, None, is_required=False),
    "payload": _Field(_bytes, b""),
    "codec": _Field(_checked_name, "raw"),
    "headers": _Field(_headers, NO_HEADERS, is_required=False),
    "tenant": _Field(_checked_name, None, is_required=False),
    "priority": _Field(_integer, 0),
    "max_attempts": _Field(_integer, 0),
    "catch_up": _Field(_catch_up, "one"),
    "overlap": _Field(_overlap, "allow"),
    "declared": _Field(_boolean, stand_in=False),
    "paused": _Field(_boolean, stand_in=False),
    "next_run_at": _Field(_time, None, is_required=False),
    "last_run_at": _Field(_time, None, is_required=False),
    "last_job_id": _Field(_uuid, None, is_required=False),
    "revision": _Field(_revision, 0),
}
