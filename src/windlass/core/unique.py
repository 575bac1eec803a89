"""Unique keys: which jobs count as the same, for how long, and what a second one does."""

from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

from windlass.core.duration import Duration, duration
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name

Scope: TypeAlias = Literal["queue", "kind", "global"]
OnConflict: TypeAlias = Literal["keep", "raise", "replace"]
Until: TypeAlias = Literal["claimed", "finished"]


@dataclass(frozen=True, slots=True)
class Unique:
    """A key that at most one live job holds; the tenant is part of it in every scope.

    `until="claimed"` frees it at the first claim, `"finished"` at the end of the job, a duration that long after
    the enqueue, whatever became of the job. `on_conflict="replace"` takes payload and run time from the newer call.
    """

    key: str
    scope: Scope = "queue"
    until: Until | Duration = "claimed"
    on_conflict: OnConflict = "keep"
    match_payload: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot mean anything."""
        check_name(self.key, "unique key")
        _check_choice("scope", self.scope, ("queue", "kind", "global"))
        _check_choice("on_conflict", self.on_conflict, ("keep", "raise", "replace"))
        if isinstance(self.until, str):
            _check_choice("until", self.until, ("claimed", "finished"))
        else:
            duration(self.until, "until")
        if self.on_conflict == "replace" and self.until != "claimed":
            message = "on_conflict='replace' needs until='claimed': a job that has been claimed cannot be replaced"
            raise InvalidValue(message)
        if self.on_conflict == "replace" and self.match_payload:
            message = "on_conflict='replace' takes the newer payload, so match_payload=True contradicts it"
            raise InvalidValue(message)


class Hold(NamedTuple):
    """A job's wish to hold a key, as stores see it.

    `name` tells holders apart over scopes and tenants; `hold_for` is set when time alone frees the key;
    `digest` stands for the payload, which may be pruned before the key is free.
    """

    name: str
    key: str
    until: Literal["claimed", "finished", "time"]
    hold_for: timedelta | None
    on_conflict: OnConflict
    match_payload: bool
    digest: bytes


def hold(unique: Unique, *, queue: str, kind: str | None, tenant: str | None, payload: bytes) -> Hold:
    """Return what `unique` means for one job."""
    place = {"queue": queue, "kind": kind or "", "global": ""}[unique.scope]
    until = unique.until if isinstance(unique.until, str) else "time"
    hold_for = None if isinstance(unique.until, str) else duration(unique.until, "until")
    # "|" is in no name, so no key, queue or tenant can reach into another's holder
    name = f"{unique.scope}|{tenant or ''}|{place}|{unique.key}"
    return Hold(name, unique.key, until, hold_for, unique.on_conflict, unique.match_payload, digest(payload))


def key_of(name: str) -> str:
    """Return the caller's key in the name of a hold."""
    return name.rpartition("|")[2]


def digest(payload: bytes) -> bytes:
    """Return what `match_payload` compares."""
    return blake2b(payload, digest_size=16).digest()


def _check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        message = f"{what} is one of {', '.join(choices)}, not {value!r}"
        raise InvalidValue(message)
