"""Questions that tests put to an S3 server themselves, past the store: signed, one connection each, no second try."""

import hashlib
import hmac
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from tests.slatedb.s3 import CREDENTIALS

_PATIENCE: Final = 30.0
_SERVICE: Final = f"{CREDENTIALS['AWS_REGION']}/s3/aws4_request"


class Told(NamedTuple):
    """What a server answers; the names of its headers are in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(endpoint: str, method: str, target: str, body: bytes = b"", **headers: str) -> Told:
    """Return what one call brings; `if_none_match="*"` is the header `If-None-Match`."""
    return ask_within(_PATIENCE, endpoint, method, target, body, **headers)


def ask_within(seconds: float, endpoint: str, method: str, target: str, body: bytes = b"", **headers: str) -> Told:
    """Return what one call brings; raises `TimeoutError` where nothing comes for so many seconds."""
    where = urlsplit(endpoint)
    extra = {name.replace("_", "-"): value for name, value in headers.items()}
    assert where.hostname is not None
    with closing(HTTPConnection(where.hostname, where.port, timeout=seconds)) as connection:
        # what begins so is signed, whatever it is
        of_amazon = {name: value for name, value in extra.items() if name.startswith("x-amz-")}
        connection.request(method, target, body, {**extra, **_signed(method, where.netloc, target, body, of_amazon)})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Told(answer.status, names, answer.read())


def _signed(method: str, host: str, target: str, body: bytes, more: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers that show who calls (AWS Signature Version 4), with those that are signed."""
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    sent = dict(sorted({"host": host, "x-amz-content-sha256": digest, "x-amz-date": at, **more}.items()))
    path, _, query = target.partition("?")
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    whole = "\n".join([
        method,
        path,
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{value}" for name, value in sent.items()),
        "",
        ";".join(sent),
        digest,
    ])  # fmt: skip
    scope = f"{at[:8]}/{_SERVICE}"
    key = f"AWS4{CREDENTIALS['AWS_SECRET_ACCESS_KEY']}".encode()
    for word in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(whole.encode()).hexdigest()}"):
        key = hmac.digest(key, word.encode(), "sha256")
    credential = f"Credential={CREDENTIALS['AWS_ACCESS_KEY_ID']}/{scope}"
    shown = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={';'.join(sent)}, Signature={key.hex()}"
    return {**sent, "authorization": shown}
