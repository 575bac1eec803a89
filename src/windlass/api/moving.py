"""What goes from one store to another, as the API writes and reads it."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from windlass.api.jobs import Job, job_of, told
from windlass.api.shape import Asked, Blob, Id, Limit, Moment, Name, Told
from windlass.core import moving as core
from windlass.core.ids import JobId

MOST_IN_PARCEL = 10_000
"""Jobs, keys and names that one call may carry."""

KeyName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1_000, extra_json_schema={"pattern": r"^[A-Za-z0-9_.:/@#|-]{1,1000}$"})
]
"""How a store tells the holders of unique keys apart: scope, tenant, place and key."""
Number: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]


class Moved(Told, kw_only=True):
    """Where the jobs of a store go: a URL without secrets, and the id of the move."""

    to: Annotated[str, Meta(min_length=1, max_length=2_000)]
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
    kv: Annotated[list[Blob], Meta(max_length=MOST_IN_PARCEL)] = []
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
