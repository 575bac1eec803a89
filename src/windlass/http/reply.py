"""The reply to a call, as it is sent and as it is kept."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from starlette.types import Send

from windlass.api.problems import Problem, problem_of, status_of
from windlass.core.errors import WindlassError
from windlass.http.refusal import Refusal

JSON: Final = "application/json"
_NO_HEADERS: Final[Mapping[str, str]] = {}
UNAVAILABLE: Final = 503
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": "1"}

encode: Final = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """A status and a body, of JSON unless it says otherwise."""

    status: int
    body: bytes
    headers: Mapping[str, str] = _NO_HEADERS
    content_type: str = JSON

    async def send(self, send: Send) -> None:
        """Send it, whole."""
        headers = [(b"content-type", self.content_type.encode()), (b"content-length", str(len(self.body)).encode())]
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def problem_from(error: WindlassError | Refusal) -> Problem:
    """Return why something was not done, as it is told."""
    return error.problem if isinstance(error, Refusal) else problem_of(error)


def refused(error: WindlassError | Refusal) -> Reply:
    """Return the reply that tells why a call was not done."""
    if isinstance(error, Refusal):
        return Reply(error.status, encode(error.problem), error.headers)
    status = status_of(error)
    return Reply(status, encode(problem_of(error)), RETRY_AFTER if status == UNAVAILABLE else _NO_HEADERS)
