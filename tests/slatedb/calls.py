"""What a request to S3 asks for, by S3's own names."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

_PLAIN: Final = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
_OF_UPLOADS: Final = {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}


def call_of(method: str, target: str) -> str:
    """Return the name of the call that a request makes, where the bucket is the first part of the path."""
    bucket, _, key = urlsplit(target).path.removeprefix("/").partition("/")
    query = query_of(target)
    if not key:
        return _of_bucket(method, query) if bucket else "ListBuckets"
    if "uploads" in query:
        return "CreateMultipartUpload"
    if "uploadId" in query:
        return _OF_UPLOADS.get(method, method)
    return _PLAIN.get(method, method)


def query_of(target: str) -> dict[str, str]:
    """Return what stands behind the path, without repetitions."""
    return {name: values[0] for name, values in parse_qs(urlsplit(target).query, keep_blank_values=True).items()}


def _of_bucket(method: str, query: dict[str, str]) -> str:
    if method == "GET":
        return "ListObjectsV2"
    if method == "POST" and "delete" in query:
        return "DeleteObjects"
    return {"PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}.get(method, method)
