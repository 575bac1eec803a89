"""Unique keys: what a second job under one is told, and what a job that waits again keeps of its own."""

from typing import NamedTuple, Protocol

from windlass.core.errors import UniqueConflict
from windlass.core.ids import JobId
from windlass.core.unique import Hold


class Holder(Protocol):
    """The job that holds a key now, as a store keeps it."""

    @property
    def job_id(self) -> JobId:
        """The job."""
        ...

    @property
    def digest(self) -> bytes:
        """What `match_payload` compares."""
        ...


class Kept(NamedTuple):
    """What a job that waits again shows and remembers of its key."""

    unique_key: str | None
    hold: str | None
    hold_until: str | None


NO_KEY = Kept(None, None, None)


class Keyed(Protocol):
    """A job with its key, as a store keeps it."""

    @property
    def unique_key(self) -> str | None:
        """The key that the job shows."""
        ...

    @property
    def hold(self) -> str | None:
        """The name of the key that it holds or could take back."""
        ...

    @property
    def hold_until(self) -> str | None:
        """What frees the key."""
        ...


def check_conflict(hold: Hold, found: Holder) -> None:
    """Refuse a second job under a held key, when it asked for that."""
    if hold.match_payload and hold.digest != found.digest:
        raise UniqueConflict(hold.key, found.job_id, "payload")
    if hold.on_conflict == "raise":
        raise UniqueConflict(hold.key, found.job_id)


def as_it_was(job: Keyed) -> Kept:
    """Return what a job has of its key now."""
    return Kept(job.unique_key, job.hold, job.hold_until)


def after_attempt(job: Keyed) -> Kept:
    """A key that the claim freed is not taken again; any other stays as it is."""
    return NO_KEY if job.hold_until == "claimed" else as_it_was(job)
