"""From the parts of a URL to an address: which bucket or folder, and how this process works with it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from windlass.core.duration import ZERO
from windlass.core.errors import InvalidURL
from windlass.kit.timeout_option import timeout_of

Kind: TypeAlias = Literal["memory", "file", "s3", "gs", "az"]

Place: TypeAlias = tuple[Kind, str, str, str | None]

LONGEST_FLUSH: Final = timedelta(seconds=10)
LONGEST_PREFIX: Final = 500
_KINDS: Final[Mapping[str, Kind]] = {
    "slatedb+memory": "memory",
    "slatedb+file": "file",
    "slatedb+s3": "s3",
    "slatedb+gs": "gs",
    "slatedb+az": "az",
}
_BUCKET_FLUSH: Final = timedelta(milliseconds=20)
_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{1,61}[A-Za-z0-9]", re.ASCII)
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,6})?)(?P<unit>ms|s)|0", re.ASCII)
_SECRET: Final = re.compile(r"user|pass|key|secret|token|sas|credential|account|client", re.ASCII)
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_VARIABLES: Final[Mapping[Kind, str]] = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is; it holds no secret, so that it may be shown.

    `bucket` is the name of a bucket, a container or a store in memory, and empty for a folder. `path` is what stands
    behind it: what the keys of all objects begin with, or the folder. `timeout` is the deadline of a call in seconds,
    `flush` the shortest time from one durable write to the next. Who has `look` set opens nothing but a reader.
    """

    kind: Kind
    bucket: str
    path: str
    endpoint: str | None = None
    region: str | None = None
    create: bool = True
    take_over: bool = False
    look: bool = False
    timeout: float = 10.0
    flush: timedelta = ZERO

    @property
    def place(self) -> Place:
        """What tells databases apart, whatever else a URL says."""
        return self.kind, self.bucket, self.path, self.endpoint

    @property
    def known_as(self) -> frozenset[tuple[object, ...]]:
        """A name of this database that is no other's."""
        return frozenset({("slatedb", *self.place)})

    @property
    def is_remote(self) -> bool:
        """Whether calls go over a network, and cost money."""
        return self.kind not in {"memory", "file"}

    @property
    def prefix(self) -> str:
        """What the keys of all objects begin with, in their bucket or folder."""
        return self.path if self.is_remote else ""

    @property
    def where(self) -> str:
        """Name the database for people."""
        path = f"/{self.path}" if self.bucket and self.path else self.path
        at = "" if self.endpoint is None else f" at {self.endpoint}"
        return f"slatedb+{self.kind}://{self.bucket}{path}{at}"

    @property
    def credentials(self) -> str:
        """Name the environment variables that let this process in."""
        return _VARIABLES.get(self.kind, "none")


def read_address(scheme: str, host: str, path: str, options: Mapping[str, str]) -> Address:
    """Return what the URL `scheme://host/path?options` says; options that are none of this store's are not looked at.

    Whoever calls it refuses those afterwards, since what is said here of a secret in the URL helps more.
    """
    kind = _KINDS[scheme]
    _check_secrets(scheme, kind, host, options)
    _check_use(scheme, kind, options)
    bucket, inside = _place(scheme, kind, host, path)
    region = options.get("region")
    look = options.get("look") == "yes"
    return Address(
        kind=kind,
        bucket=bucket,
        path=inside,
        endpoint=_endpoint(scheme, kind, options.get("endpoint")),
        region=None if region is None else _region(scheme, region),
        create=options.get("create") != "no" and not look,
        take_over=options.get("take_over") == "1",
        look=look,
        timeout=timeout_of(scheme, options.get("timeout", "10")),
        flush=_flush(scheme, kind, options.get("flush")),
    )


def _check_secrets(scheme: str, kind: Kind, host: str, options: Mapping[str, str]) -> None:
    how = f"set {_VARIABLES[kind]} in the environment" if kind in _VARIABLES else f"{scheme}:// needs none"
    if "@" in host:
        message = f"the {scheme}:// URL holds a user or a password, and URLs end up in logs: take it out; {how}"
        raise InvalidURL(message)
    for name in options:
        if _SECRET.search(name.lower()):
            message = f"the {scheme}:// URL holds {name[:40]!r}, and URLs end up in logs: take it out; {how}"
            raise InvalidURL(message)


def _check_use(scheme: str, kind: Kind, options: Mapping[str, str]) -> None:
    """Refuse what would have no effect."""
    if "endpoint" in options and kind not in {"s3", "az"}:
        message = f"{scheme}:// takes no endpoint: it is for slatedb+s3:// and slatedb+az://"
        raise InvalidURL(message)
    if "region" in options and kind != "s3":
        message = f"{scheme}:// takes no region: it is for slatedb+s3://"
        raise InvalidURL(message)


def _place(scheme: str, kind: Kind, host: str, path: str) -> tuple[str, str]:
    """Return the bucket, and where in it."""
    match kind:
        case "memory":
            return _memory_name(host, path), ""
        case "file":
            return "", _folder(host, path)
        case _:
            return _bucket(scheme, host), _prefix(scheme, path)


def _memory_name(host: str, path: str) -> str:
    if _NAME.fullmatch(host) is None or path.strip("/"):
        message = (
            "slatedb+memory:// takes one name, of ASCII letters, digits and _ . : -, and no path: slatedb+memory://name"
        )
        raise InvalidURL(message)
    return host


def _folder(host: str, path: str) -> str:
    folder = path.rstrip("/")
    if host or not folder or "\0" in folder:
        message = (
            "slatedb+file:// is followed by the absolute path of a folder, with three slashes: slatedb+file:///a/b"
        )
        raise InvalidURL(message)
    # one folder has one owner, however it is spelt
    return os.path.realpath(folder)


def _bucket(scheme: str, host: str) -> str:
    if _BUCKET.fullmatch(host) is None:
        message = f"{scheme}:// is followed by the name of a bucket, and a prefix if you like: {scheme}://bucket/prefix"
        raise InvalidURL(message)
    return host


def _prefix(scheme: str, path: str) -> str:
    prefix = path.strip("/")
    parts = prefix.split("/") if prefix else []
    if not prefix.isprintable() or len(prefix) > LONGEST_PREFIX or not all(part.strip(".") for part in parts):
        message = (
            f"the prefix of the {scheme}:// URL cannot be one: it is made of printable names parted by one '/', none "
            f"of them '.' or '..', of {LONGEST_PREFIX} characters at most"
        )
        raise InvalidURL(message)
    return prefix


def _endpoint(scheme: str, kind: Kind, given: str | None) -> str | None:
    """Return the endpoint of the URL, or else of the environment: it is a part of where the database is."""
    if given is not None:
        return _read_endpoint(f"the endpoint of the {scheme}:// URL", given)
    # as programs of AWS read them, in their order
    for name in _ENDPOINTS if kind == "s3" else ():
        if found := os.environ.get(name, "").strip():
            return _read_endpoint(f"the endpoint in {name}", found)
    return None


def _read_endpoint(what: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        found = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, found = urlsplit(""), False
    if "@" in parts.netloc:
        message = f"{what} holds a user or a password, and URLs end up in logs: take it out"
        raise InvalidURL(message)
    if not found or parts.scheme not in {"http", "https"} or parts.query or parts.fragment or not text.isprintable():
        message = f"{what} cannot be read: write endpoint=https://host or http://host:9000"
        raise InvalidURL(message)
    return text.rstrip("/")


def _region(scheme: str, text: str) -> str:
    if _REGION.fullmatch(text) is None:
        message = f"{scheme}:// takes a region like eu-central-1, not {text[:40]!r}"
        raise InvalidURL(message)
    return text


def _flush(scheme: str, kind: Kind, text: str | None) -> timedelta:
    if text is None:
        # each durable write of a bucket is a call that is paid for; elsewhere it costs less than a millisecond
        return ZERO if kind in {"memory", "file"} else _BUCKET_FLUSH
    found = _DURATION.fullmatch(text)
    if found is not None:
        number = float(found["number"] or 0)
        flush = timedelta(milliseconds=number) if found["unit"] == "ms" else timedelta(seconds=number)
        if flush <= LONGEST_FLUSH:
            return flush
    message = f"{scheme}:// takes flush=0 to {LONGEST_FLUSH.total_seconds():.0f}s, like 20ms or 0.5s, not {text[:40]!r}"
    raise InvalidURL(message)
