"""What goes from one store to another, as the API writes and reads it."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from windlass.api.calls import MOST_JOBS, Nothing, empty_request, nothing_reply, nothing_response
from windlass.api.carried_call import CarriedCall, Parts, PlainCall, capped_limit, concatenated, nothing, pages_of
from windlass.api.jobs import Job, job_of, told
from windlass.api.shape import Asked, Id, Key, Limit, Moment, Name, Told, data, key_blob
from windlass.core import moving as core
from windlass.core.commands import DeleteMoved, SetMoved, TakeKeys, UnpackJobs
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.ids import JobId, job_id
from windlass.core.names import check_key, check_name
from windlass.core.queries import GetMoved, GetUnpacked, ListTimedKeys, PackJobs

MOST_IN_PARCEL = 10_000
"""Jobs, keys and names that one call may carry."""

KeyName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1_000, extra_json_schema={"pattern": r"^[A-Za-z0-9_.:/@#|-]{1,1000}$"})
]
"""How a store tells the holders of unique keys apart: scope, tenant, place and key."""
_KEY_NAME: Final = re.compile(r"[A-Za-z0-9_.:/@#|-]{1,1000}", re.ASCII)
Number: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]


class Moved(Told, kw_only=True):
    """Where the jobs of a store go: a URL without secrets, and the id of the move."""

    to: Annotated[str, Meta(min_length=1, max_length=2_000, extra_json_schema={"format": "windlass-url"})]
    move: Name


class MovedTold(Told, kw_only=True):
    """Where the jobs of this store go or went; left out while it takes jobs."""

    moved: Moved | None = None


class SetMovedAsked(Asked, kw_only=True):
    """Where the jobs of this store go from now on; null: it takes jobs again."""

    moved: Moved | None


def moved_told(moved: core.Moved | None) -> Moved | None:
    """Return where jobs go, as it is told."""
    return None if moved is None else Moved(to=moved.to, move=moved.move)


def moved_of(told: Moved | None) -> core.Moved | None:
    """Return where jobs go."""
    return None if told is None else core.Moved(told.to, told.move)


class HeldKey(Told, kw_only=True):
    """A unique key that is held, by which job and until when; `expires_at` where time alone frees it."""

    name: KeyName
    job_id: Id
    until: Literal["claimed", "finished", "time"]
    expires_at: Moment | None = None
    digest_base64: bytes = b""
    """Stands for the payload of the job that took it."""


def key_told(key: core.HeldKey) -> HeldKey:
    """Return a held key as it is told."""
    return HeldKey(
        name=key.name, job_id=key.job_id, until=key.until, expires_at=key.expires_at, digest_base64=key.digest
    )


def key_of(told: HeldKey) -> core.HeldKey:
    """Return a held key."""
    return core.HeldKey(told.name, JobId(told.job_id), told.until, told.expires_at, told.digest_base64)


class PackAsked(Asked, kw_only=True):
    """Up to `limit` waiting jobs of a queue."""

    queue: Name
    limit: Limit = 100


class Packed(Told, kw_only=True):
    """Waiting jobs, whole, in the order of their enqueue, and the keys that they hold.

    Where their bytes are too many for one reply there are fewer than wanted, but one at least.
    """

    jobs: list[Job]
    keys: list[HeldKey] = []


def packed_told(packed: core.Packed) -> Packed:
    """Return packed jobs as they are told, their payloads in bytes."""
    return Packed(jobs=[told(job, as_bytes=True) for job in packed.jobs], keys=[key_told(key) for key in packed.keys])


def packed_of(told: Packed) -> core.Packed:
    """Return the packed jobs that were told."""
    return core.Packed([job_of(one) for one in told.jobs], [key_of(one) for one in told.keys])


class Parcel(Asked, kw_only=True):
    """Jobs of one queue on their way; `number` counts from 1 within a move and a queue. Payloads are in bytes."""

    move: Name
    queue: Name
    number: Number
    jobs: Annotated[list[Job], Meta(max_length=MOST_IN_PARCEL)]
    keys: Annotated[list[HeldKey], Meta(max_length=MOST_IN_PARCEL)] = []


def parcel_asked(parcel: core.Parcel) -> Parcel:
    """Return a parcel as it is sent."""
    packed = packed_told(parcel.packed)
    return Parcel(move=parcel.move, queue=parcel.queue, number=parcel.number, jobs=packed.jobs, keys=packed.keys)


class UnpackTold(Told, kw_only=True):
    """Whether the jobs of the parcel are here: false, and nothing was done, where it is not the next one."""

    unpacked: bool


class UnpackedAsked(Asked, kw_only=True):
    """A move and one of its queues."""

    move: Name
    queue: Name


class UnpackedTold(Told, kw_only=True):
    """The last parcel that was unpacked here, and what was in it; without `number` there was none."""

    number: int | None = None
    ids: list[str] = []


def unpacked_of(told: UnpackedTold) -> core.Unpacked | None:
    """Return the last parcel that was unpacked."""
    return None if told.number is None else core.Unpacked(told.number, [JobId(each) for each in told.ids])


class LetGoAsked(Asked, kw_only=True):
    """What another store has now: waiting jobs, unique keys by their names, keys of kv, schedules.

    With `move` it is let go of only while the jobs of this store go by that move.
    """

    move: Name | None = None
    jobs: Annotated[list[Id], Meta(max_length=MOST_IN_PARCEL)] = []
    keys: Annotated[list[KeyName], Meta(max_length=MOST_IN_PARCEL)] = []
    kv: Annotated[list[Key], Meta(max_length=MOST_IN_PARCEL)] = []
    schedules: Annotated[list[Name], Meta(max_length=MOST_IN_PARCEL)] = []


class LetGoTold(Told, kw_only=True):
    """Whether it was let go of."""

    let_go: bool


class TimedKeysAsked(Asked, kw_only=True):
    """How many at most."""

    limit: Limit = 100


class TimedKeys(Told, kw_only=True):
    """Keys that only time frees."""

    keys: list[HeldKey]


class TakeKeysAsked(Asked, kw_only=True):
    """Keys to be held until their time is over, those that are free."""

    keys: Annotated[list[HeldKey], Meta(max_length=MOST_IN_PARCEL)]


def checked_keys(written: Sequence[HeldKey]) -> list[core.HeldKey]:
    """Return keys that can be held."""
    keys = [_checked_key(each) for each in written]
    check_once([key.name for key in keys], "key")
    return keys


def check_once(names: Sequence[str], what: str) -> None:
    """Raise `InvalidValue` when a name is there twice."""
    if len({*names}) != len(names):
        message = f"a {what} is there twice: send each once"
        raise InvalidValue(message)


def _checked_key(written: HeldKey) -> core.HeldKey:
    key = key_of(written)
    if key.until == "time" and key.expires_at is None:
        message = f"a key that time frees says when in `expires_at`: {key.name[:60]!r} does not"
        raise InvalidValue(message)
    return key._replace(
        name=_checked_key_name(key.name),
        job_id=job_id(key.job_id),
        expires_at=None if key.expires_at is None else moment(key.expires_at, "expires_at"),
    )


def _checked_key_name(name: str) -> str:
    if not _KEY_NAME.fullmatch(name):
        message = f"a held key is called SCOPE|TENANT|PLACE|KEY, as it was told, not {name[:60]!r}"
        raise InvalidValue(message)
    return name


def _let_go_request(command: DeleteMoved) -> LetGoAsked:
    return LetGoAsked(
        move=command.move,
        jobs=list(command.jobs),
        keys=list(command.keys),
        kv=[key_blob(key) for key in command.kv],
        schedules=list(command.schedules),
    )


def _let_go_command(request: LetGoAsked) -> DeleteMoved:
    return DeleteMoved(
        move=None if request.move is None else check_name(request.move, "move"),
        jobs=[job_id(each) for each in request.jobs],
        keys=[_checked_key_name(each) for each in request.keys],
        kv=[check_key(data(each)) for each in request.kv],
        schedules=[check_name(each, "schedule id") for each in request.schedules],
    )


def _let_go_parts(command: DeleteMoved) -> Iterator[DeleteMoved]:
    longest = max(map(len, (command.jobs, command.keys, command.kv, command.schedules)))
    for begin in range(0, longest, MOST_JOBS):
        some = slice(begin, begin + MOST_JOBS)
        yield DeleteMoved(
            command.move, command.jobs[some], command.keys[some], command.kv[some], command.schedules[some]
        )


def _unpacked_response(query: GetUnpacked, last: core.Unpacked | None) -> UnpackedTold:
    del query
    return UnpackedTold() if last is None else UnpackedTold(number=last.number, ids=list(last.ids))


def _take_keys_command(request: TakeKeysAsked) -> TakeKeys:
    keys = checked_keys(request.keys)
    if any(key.until != "time" for key in keys):
        message = "only keys that time frees can be taken alone: others come with their jobs"
        raise InvalidValue(message)
    return TakeKeys(keys)


MOVED: Final = PlainCall(
    GetMoved,
    Nothing,
    MovedTold,
    request=empty_request,
    read=lambda _: GetMoved(),
    response=lambda _, moved: MovedTold(moved=moved_told(moved)),
    reply=lambda told: moved_of(told.moved),
)
SET_MOVED: Final = CarriedCall(
    SetMoved,
    SetMovedAsked,
    Nothing,
    request=lambda command: SetMovedAsked(moved=moved_told(command.moved)),
    reply=nothing_reply,
)
PACK: Final = CarriedCall(
    PackJobs,
    PackAsked,
    Packed,
    request=lambda query: PackAsked(queue=query.queue, limit=query.limit),
    reply=packed_of,
    parts=capped_limit(lambda packed: next(iter(packed), core.Packed([], []))),
)
UNPACK: Final = CarriedCall(
    UnpackJobs,
    Parcel,
    UnpackTold,
    request=lambda command: parcel_asked(command.parcel),
    reply=lambda told: told.unpacked,
)
UNPACKED: Final = PlainCall(
    GetUnpacked,
    UnpackedAsked,
    UnpackedTold,
    request=lambda query: UnpackedAsked(move=query.move, queue=query.queue),
    read=lambda asked: GetUnpacked(check_name(asked.move, "move"), check_name(asked.queue, "queue")),
    response=_unpacked_response,
    reply=unpacked_of,
)
LET_GO: Final = PlainCall(
    DeleteMoved,
    LetGoAsked,
    LetGoTold,
    request=_let_go_request,
    read=_let_go_command,
    response=lambda _, let_go: LetGoTold(let_go=let_go),
    reply=lambda told: told.let_go,
    # more records than one request may name are deleted in several steps
    parts=Parts(_let_go_parts, all),
)
TIMED_KEYS: Final = PlainCall(
    ListTimedKeys,
    TimedKeysAsked,
    TimedKeys,
    request=lambda query: TimedKeysAsked(limit=query.limit),
    read=lambda asked: ListTimedKeys(asked.limit),
    response=lambda _, keys: TimedKeys(keys=[key_told(key) for key in keys]),
    reply=lambda told: [key_of(one) for one in told.keys],
    parts=capped_limit(concatenated),
)
TAKE_KEYS: Final = PlainCall(
    TakeKeys,
    TakeKeysAsked,
    Nothing,
    request=lambda command: TakeKeysAsked(keys=[key_told(key) for key in command.keys]),
    read=_take_keys_command,
    response=nothing_response,
    reply=nothing_reply,
    parts=pages_of("keys", nothing),
)
