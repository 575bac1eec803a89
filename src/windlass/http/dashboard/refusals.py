"""What a browser shows when something is refused: a page that says why, or the login."""

from typing import Final
from urllib.parse import quote

from starlette.types import Scope

from windlass.api.operations import ROOT
from windlass.core.errors import WindlassError
from windlass.http.dashboard.endpoints import HTML, LIVE
from windlass.http.dashboard.rendering import Frame, Rendering
from windlass.http.dashboard.seen import NOBODY
from windlass.http.refusal import Refusal
from windlass.http.reply import Reply, problem_from, refused

UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
LONGEST_NEXT: Final = 2_000
"""Characters of an address that one comes back to after the login: a header has no room for any length."""
LOGIN: Final = "/login"
NOT_KNOWN: Final = (
    "You are not known here. Log in to the application that this dashboard is part of, and come back. If it lets "
    "nobody in, whoever mounted it gives it auth= or tokens=."
)
NO_PAGE: Final = "There is no page at this address."


class Refusals:
    """Tells why a request is refused: to whoever asks for a page by a page, to all others by JSON."""

    def __init__(self, rendering: Rendering) -> None:
        """Where one logs in, whoever is not known is led there."""
        self._rendering = rendering

    def refused(self, scope: Scope, error: Refusal | WindlassError) -> Reply:
        """Return the reply."""
        plain = refused(error)
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root)
        if scope["method"] != "GET" or path.startswith((f"{ROOT}/", f"{LIVE}/")) or not _reads_pages(scope):
            return plain
        if plain.status == UNAUTHORIZED and self._rendering.logs_in:
            return Reply(303, b"", {"Location": f"{quote(root)}{LOGIN}{_next(path, scope['query_string'])}"}, HTML)
        frame = Frame(root, "refused", "Refused", NOBODY)
        body = self._rendering.page(frame, {"status": plain.status, "message": _message(plain.status, error)})
        return Reply(plain.status, body, plain.headers, HTML)


def _next(path: str, query: bytes) -> str:
    wanted = quote(path + (f"?{query.decode('latin-1')}" if query else ""), safe="")
    return f"?next={wanted}" if len(wanted) <= LONGEST_NEXT else ""


def _message(status: int, error: Refusal | WindlassError) -> str:
    if status == UNAUTHORIZED:
        return NOT_KNOWN
    # what a path of the API says is of no use to whoever looks for a page
    return NO_PAGE if status == NOT_FOUND and isinstance(error, Refusal) else problem_from(error).message


def _reads_pages(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
