"""Where a browser gives its token: the script of the page begins the session by the API."""

from starlette.types import Receive, Scope, Send

from windlass.api.shape import Asked
from windlass.http.dashboard.endpoints import HTML
from windlass.http.dashboard.page import page_reader
from windlass.http.dashboard.rendering import Frame, Rendering
from windlass.http.dashboard.seen import NOBODY
from windlass.http.reply import Reply


class LoginAsked(Asked, kw_only=True):
    """Where to go after the login."""

    next: str = "/"


class LoginPage:
    """Answers with the form, for everybody; it tells nothing of the store."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._read = page_reader(LoginAsked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del receive
        root = scope.get("root_path", "")
        wanted = f"{root}{inside(self._read(scope['query_string']).next)}"
        frame = Frame(root, "login", "Log in", NOBODY)
        await Reply(200, self._rendering.page(frame, {"next": wanted}), content_type=HTML).send(send)


def inside(wanted: str) -> str:
    r"""Return a path of this site, `/` for all that could lead to another one: `//evil`, `/\evil`, `https:evil`."""
    # browsers read a backslash as a slash, and leave out what cannot be seen
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    return wanted if plain and wanted.startswith("/") and not wanted.startswith("//") else "/"
