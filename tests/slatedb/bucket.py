"""A bucket of S3 in memory: objects by key, conditions on writes, pages of a list, uploads in parts."""

import hashlib
import secrets
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

PAGE: Final = 1_000
"""How many keys a list has at most, unless fewer are asked for."""


class Refused(Exception):
    """S3 does not do what it was asked for; it says why by a status and a code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Object:
    """What lies under a key; `told` are headers that were sent with it, and are given with it."""

    body: bytes
    etag: str
    at: datetime
    told: Mapping[str, str]


class Upload(NamedTuple):
    """An object in the making."""

    told: Mapping[str, str]
    parts: dict[int, bytes]


class Conditions(NamedTuple):
    """What must be true of the object that is there, if any, for a write: None demands nothing."""

    if_match: str | None = None
    if_none_match: str | None = None


class Page(NamedTuple):
    """A part of a list: keys with their objects, what stands for all keys below a delimiter, where the next begins."""

    objects: list[tuple[str, Object]]
    prefixes: list[str]
    after: str | None


@dataclass
class Bucket:
    """Every method is one atomic step."""

    objects: dict[str, Object] = field(default_factory=dict[str, Object])
    uploads: dict[str, Upload] = field(default_factory=dict[str, Upload])

    def put(self, key: str, body: bytes, told: Mapping[str, str], conditions: Conditions) -> Object:
        """Write an object, unless the one that is there is not as it must be."""
        there, (if_match, if_none_match) = self.objects.get(key), conditions
        if if_match is not None and there is None:
            raise Refused(404, "NoSuchKey")
        if there is not None and (if_none_match == "*" or (if_match is not None and there.etag != if_match)):
            raise Refused(412, "PreconditionFailed")
        self.objects[key] = made = Object(body, _etag(body), datetime.now(UTC).replace(microsecond=0), told)
        return made

    def get(self, key: str) -> Object:
        """Return an object."""
        if key not in self.objects:
            raise Refused(404, "NoSuchKey")
        return self.objects[key]

    def delete(self, key: str) -> None:
        """Delete an object; nothing happens where there is none."""
        self.objects.pop(key, None)

    def page(self, prefix: str, *, delimiter: str = "", after: str = "", limit: int = PAGE) -> Page:
        """List the keys with a prefix, in their order, beginning behind `after`."""
        keys = sorted((key for key in self.objects if key.startswith(prefix)), key=str.encode)
        keys = keys[bisect_right(keys, after.encode(), key=str.encode) :]
        objects: list[tuple[str, Object]] = []
        prefixes: list[str] = []
        last = ""
        for key in keys:
            shared = _shared(key, prefix, delimiter)
            # what is shared by keys of an earlier page was listed there
            if shared is not None and (shared in prefixes[-1:] or after.startswith(shared)):
                last = key
                continue
            if len(objects) + len(prefixes) == limit:
                return Page(objects, prefixes, last)
            if shared is None:
                objects.append((key, self.objects[key]))
            else:
                prefixes.append(shared)
            last = key
        return Page(objects, prefixes, None)

    def begin_upload(self, told: Mapping[str, str]) -> str:
        """Return the name of a new upload."""
        name = secrets.token_hex(8)
        self.uploads[name] = Upload(told, {})
        return name

    def put_part(self, upload: str, number: int, body: bytes) -> str:
        """Keep a part of an upload; return its etag."""
        self._upload(upload).parts[number] = body
        return _etag(body)

    def complete_upload(self, key: str, upload: str, conditions: Conditions) -> Object:
        """Make an object of all parts; see `put`."""
        told, parts = self._upload(upload)
        made = self.put(key, b"".join(parts[number] for number in sorted(parts)), told, conditions)
        del self.uploads[upload]
        return made

    def abort_upload(self, upload: str) -> None:
        """Throw the parts away."""
        self._upload(upload)
        del self.uploads[upload]

    def _upload(self, upload: str) -> Upload:
        if upload not in self.uploads:
            raise Refused(404, "NoSuchUpload")
        return self.uploads[upload]


def _shared(key: str, prefix: str, delimiter: str) -> str | None:
    if not delimiter or delimiter not in key[len(prefix) :]:
        return None
    end = key.index(delimiter, len(prefix)) + len(delimiter)
    return key[:end]


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
