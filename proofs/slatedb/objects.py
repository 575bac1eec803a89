"""What lies in an object store: the files of a folder, or what a bucket lists."""

from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit
from xml.etree import ElementTree as ET

from tests.slatedb.asking import ask

_NAMES: Final = "{http://s3.amazonaws.com/doc/2006-03-01/}"
"""What a bucket puts before the names in its answers."""


class Size(NamedTuple):
    """How many objects there are, and their bytes."""

    objects: int
    size: int


def size_at(url: str) -> Size:
    """Return what the store at this URL of SlateDB takes."""
    parts = urlsplit(url)
    if parts.scheme == "slatedb+file":
        return _size_in(Path(parts.path))
    return _size_below(parse_qs(parts.query)["endpoint"][0], parts.netloc, parts.path.strip("/"))


def _size_in(folder: Path) -> Size:
    objects = size = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                size += path.stat().st_size
                objects += 1
        except FileNotFoundError:
            # it was removed meanwhile
            continue
    return Size(objects, size)


def _size_below(endpoint: str, bucket: str, prefix: str) -> Size:
    objects = size = 0
    more = ""
    while True:
        told = ask(endpoint, "GET", f"/{bucket}?list-type=2&prefix={quote(prefix, safe='')}%2F{more}")
        if told.status != 200:
            message = f"the bucket is not listed: {told.status} {told.body.decode()}"
            raise RuntimeError(message)
        page = ET.fromstring(told.body)  # noqa: S314 - the answer of a server of our own
        sizes = [int(each.text or "") for each in page.iter(f"{_NAMES}Size")]
        objects += len(sizes)
        size += sum(sizes)
        token = page.findtext(f"{_NAMES}NextContinuationToken")
        if not token:
            return Size(objects, size)
        more = f"&continuation-token={quote(token, safe='')}"
