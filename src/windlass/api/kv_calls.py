"""What is asked and told about the callers' own key space, and about locks."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from windlass.api.calls import MOST_JOBS
from windlass.api.shape import Asked, Blob, KvPair, Limit, Name, Seconds, Told


class KvKeysAsked(Asked, kw_only=True):
    """Keys of the caller's own key space."""

    keys: Annotated[list[Blob], Meta(max_length=MOST_JOBS)]


class KvValuesTold(Told, kw_only=True):
    """The values in the order of their keys, null for each that is not here."""

    values: list[Blob | None]


class KvWriteAsked(Asked, kw_only=True):
    """A value to be written, null deletes; with `expected` only if the key now holds that, null for absent."""

    key: Blob
    value: Blob | None = None
    expected: Blob | UnsetType | None = UNSET


class Written(Told, kw_only=True):
    """Whether the condition held and it was written."""

    written: bool


class KvScanAsked(Asked, kw_only=True):
    """Pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""

    prefix: Blob = ""
    after: Blob | None = None
    limit: Limit = 100


class KvPairsTold(Told, kw_only=True):
    """A page of pairs."""

    pairs: list[KvPair]


class LockAsked(Asked, kw_only=True):
    """A lock to be taken or renewed for `ttl` seconds."""

    name: Name
    holder: Name
    ttl: Seconds


class UnlockAsked(Asked, kw_only=True):
    """A lock to be let go."""

    name: Name
    holder: Name


class HeldTold(Told, kw_only=True):
    """Whether the holder has it, or had it."""

    held: bool
