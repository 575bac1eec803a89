"""An S3 server in memory, as far as an object store asks for it; it listens on loopback.

It is a server of our own since a test makes hundreds of calls: each takes a tenth of what the others need. That it
does what the others do is tested beside it.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable
from email.utils import format_datetime
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.http.frames import Request, read_head, read_request_body
from tests.slatedb.bucket import PAGE, Bucket, Conditions, Object, Refused
from tests.slatedb.calls import call_of, query_of

KEY: Final = "windlass-tests"
"""Who may call; the secret is not looked at."""
_TOLD: Final = "x-amz-meta-"
_REASONS: Final = {200: "OK", 204: "No Content", 206: "Partial Content", 304: "Not Modified"}


class Answer(NamedTuple):
    """What a call brings."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it

    def encode(self, *, with_body: bool) -> bytes:
        """Return it as it is sent; a HEAD is told the length of what it does not get."""
        headers = {"content-length": str(len(self.body)), "server": "tests", **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Refused')}\r\n{lines}\r\n"
        return head.encode("latin-1") + (self.body if with_body else b"")


class Asked(NamedTuple):
    """A request, taken apart."""

    request: Request
    bucket: Bucket
    key: str
    query: dict[str, str]

    @property
    def conditions(self) -> Conditions:
        """On what a write depends."""
        headers = self.request.headers
        return Conditions(headers.get("if-match"), headers.get("if-none-match"))

    @property
    def told(self) -> dict[str, str]:
        """What the caller says of an object, for those who read it."""
        return {name: value for name, value in self.request.headers.items() if name.startswith(_TOLD)}


class S3Server:
    """Serves buckets. `calls` counts what it was asked for, by the name of the call, and `reads` by what was read."""

    def __init__(self) -> None:
        self.buckets: Final[dict[str, Bucket]] = {}
        self.calls: Final[Counter[str]] = Counter()
        self.reads: Final[Counter[str]] = Counter()
        self._clients: Final[set[StreamWriter]] = set()
        self._server: asyncio.Server

    async def start(self) -> int:
        """Begin to listen; return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Listen no more, and end all connections."""
        self._server.close()
        for writer in [*self._clients]:
            writer.transport.abort()
        await asyncio.sleep(0)

    def answer(self, request: Request) -> Answer:
        """Do what is asked for."""
        call = call_of(request.method, request.target)
        self.calls[call] += 1
        try:
            return self._answer(call, request)
        except Refused as refused:
            return _refusal(refused)

    def _answer(self, call: str, request: Request) -> Answer:
        name, _, key = unquote(urlsplit(request.target).path).removeprefix("/").partition("/")
        if f"Credential={KEY}/" not in request.headers.get("authorization", ""):
            raise Refused(403, "InvalidAccessKeyId")
        if call == "CreateBucket":
            self.buckets.setdefault(name, Bucket())
            return Answer()
        if name not in self.buckets:
            raise Refused(404, "NoSuchBucket")
        if call not in _CALLS:
            raise Refused(501, "NotImplemented")
        if call == "GetObject":
            self.reads[key] += 1
        return _CALLS[call](Asked(request, self.buckets[name], key, query_of(request.target)))

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while head := await read_head(reader):
                body = await read_request_body(reader, head)
                method, target, _ = (word.decode() for word in head.words)
                answer = self.answer(Request(method, target, head.headers, body))
                writer.write(answer.encode(with_body=method != "HEAD"))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            # the client went away
            pass
        finally:
            self._clients.discard(writer)
            writer.close()


def _refusal(refused: Refused) -> Answer:
    if refused.status == 304:
        return Answer(304)
    return _xml(f"<Error><Code>{refused.code}</Code><Message>{refused}</Message></Error>", refused.status)


def _xml(text: str, status: int = 200) -> Answer:
    whole = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
    return Answer(status, whole.encode(), {"content-type": "application/xml"})


def _put(asked: Asked) -> Answer:
    made = asked.bucket.put(asked.key, asked.request.body, asked.told, asked.conditions)
    return Answer(headers={"etag": made.etag})


def _get(asked: Asked) -> Answer:
    found = asked.bucket.get(asked.key)
    headers = {
        **found.told,
        "etag": found.etag,
        "last-modified": format_datetime(found.at, usegmt=True),
        "accept-ranges": "bytes",
        "content-type": "binary/octet-stream",
    }
    if asked.request.headers.get("if-none-match") == found.etag:
        raise Refused(304, "NotModified")
    if asked.request.headers.get("if-match", found.etag) != found.etag:
        raise Refused(412, "PreconditionFailed")
    if "range" not in asked.request.headers:
        return Answer(200, found.body, headers)
    begin, end = _range(asked.request.headers["range"], len(found.body))
    of_all = f"bytes {begin}-{end - 1}/{len(found.body)}"
    return Answer(206, found.body[begin:end], {**headers, "content-range": of_all})


def _range(text: str, size: int) -> tuple[int, int]:
    """Return from where to where, the end excluded."""
    first, _, last = text.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size
    begin, end = int(first), min(int(last) + 1, size) if last else size
    if begin >= size:
        raise Refused(416, "InvalidRange")
    return begin, end


def _delete(asked: Asked) -> Answer:
    asked.bucket.delete(asked.key)
    return Answer(204)


def _delete_many(asked: Asked) -> Answer:
    # what it reads was sent by the same process
    sent = ET.fromstring(asked.request.body)  # noqa: S314 - as above
    keys = [each.text or "" for each in sent.iter() if each.tag.endswith("Key")]
    for key in keys:
        asked.bucket.delete(key)
    return _xml(
        f"<DeleteResult>{''.join(f'<Deleted><Key>{escape(key)}</Key></Deleted>' for key in keys)}</DeleteResult>"
    )


def _list(asked: Asked) -> Answer:
    query = asked.query
    page = asked.bucket.page(
        query.get("prefix", ""),
        delimiter=query.get("delimiter", ""),
        after=query.get("continuation-token") or query.get("start-after", ""),
        limit=min(int(query.get("max-keys", PAGE)), PAGE),
    )
    more = f"<NextContinuationToken>{escape(page.after)}</NextContinuationToken>" if page.after is not None else ""
    prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in page.prefixes)
    return _xml(
        f"<ListBucketResult><KeyCount>{len(page.objects)}</KeyCount><IsTruncated>{str(bool(more)).lower()}</IsTruncated>"
        f"{more}{''.join(_listed(key, each) for key, each in page.objects)}{prefixes}</ListBucketResult>"
    )


def _listed(key: str, found: Object) -> str:
    at = found.at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    told = f"<LastModified>{at}</LastModified><ETag>{escape(found.etag)}</ETag><Size>{len(found.body)}</Size>"
    return f"<Contents><Key>{escape(key)}</Key>{told}</Contents>"


def _begin_upload(asked: Asked) -> Answer:
    name = asked.bucket.begin_upload(asked.told)
    return _xml(f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>")


def _put_part(asked: Asked) -> Answer:
    number = int(asked.query["partNumber"])
    return Answer(headers={"etag": asked.bucket.put_part(asked.query["uploadId"], number, asked.request.body)})


def _complete_upload(asked: Asked) -> Answer:
    made = asked.bucket.complete_upload(asked.key, asked.query["uploadId"], asked.conditions)
    return _xml(f"<CompleteMultipartUploadResult><ETag>{escape(made.etag)}</ETag></CompleteMultipartUploadResult>")


def _abort_upload(asked: Asked) -> Answer:
    asked.bucket.abort_upload(asked.query["uploadId"])
    return Answer(204)


_CALLS: Final[dict[str, Callable[[Asked], Answer]]] = {
    "PutObject": _put,
    "GetObject": _get,
    "HeadObject": _get,
    "DeleteObject": _delete,
    "DeleteObjects": _delete_many,
    "ListObjectsV2": _list,
    "HeadBucket": lambda _: Answer(),
    "CreateMultipartUpload": _begin_upload,
    "UploadPart": _put_part,
    "CompleteMultipartUpload": _complete_upload,
    "AbortMultipartUpload": _abort_upload,
}
