"""The dashboard as an ASGI app: the pages, and the API that their buttons call, behind one guard."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.client.client import Client
from windlass.config.masked import masked
from windlass.core.errors import WindlassError
from windlass.http.app import Api, Way
from windlass.http.auth import Auth
from windlass.http.dashboard.endpoints import LIVE, LiveEndpoint, PageEndpoint
from windlass.http.dashboard.live import Live
from windlass.http.dashboard.login_page import LoginPage
from windlass.http.dashboard.page import Page
from windlass.http.dashboard.pages.table import VIEWS
from windlass.http.dashboard.refusals import LOGIN, Refusals
from windlass.http.dashboard.rendering import Rendering
from windlass.http.dashboard.static_files import StaticFiles
from windlass.http.entrance import entrance
from windlass.http.refusal import Refusal
from windlass.http.reply import Reply
from windlass.http.request_headers import Hosts
from windlass.http.sessions import Sessions
from windlass.http.shared import Shared

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)


class DashboardPages:
    """All pages, their streams and their files."""

    def __init__(self, shared: Shared, auth: Auth, *, store: str, logs_in: bool) -> None:
        """Show what `shared` serves; `store` is the name that is shown for it."""
        static = StaticFiles()
        rendering = Rendering(static, masked(store), logs_in=logs_in)
        pages = [Page(view()) for view in VIEWS]
        live = Live(shared, rendering, {page.name: page for page in pages})
        self._refusals = Refusals(rendering)
        logins: list[Way] = [("GET", LOGIN, "login_page", LoginPage(rendering))] if logs_in else []
        self.public: Final[Collection[str]] = [*static.apps, *(path for _, path, _, _ in logins)]
        self.ways: Final[Sequence[Way]] = [
            *(("GET", page.path, page.name, PageEndpoint(shared, auth, page, rendering, live)) for page in pages),
            *(
                ("GET", f"{LIVE}{page.path}", f"live_{page.name}", LiveEndpoint(shared, auth, page, live))
                for page in pages
            ),
            *logins,
            *(("GET", path, path, file) for path, file in static.apps.items()),
        ]

    def refused(self, scope: Scope, error: Refusal | WindlassError) -> Reply:
        """Return how a request is told that it is refused."""
        return self._refusals.refused(scope, error)


class Dashboard:
    """An ASGI app, to be run by itself or to be mounted below a path of another one.

    It opens its client at the first call, and never closes it. Without `auth` it refuses everybody.
    """

    def __init__(
        self,
        client: Client,
        *,
        auth: Auth | None = None,
        hosts: Hosts | None = None,
        sessions: Sessions | None = None,
        store: str = "",
    ) -> None:
        """Show `client` to those whom `auth` knows; `sessions` lets browsers log in, by a token."""

        def pages(shared: Shared, known: Auth) -> DashboardPages:
            return DashboardPages(shared, known, store=store, logs_in=sessions is not None)

        headers = {"Content-Security-Policy": CSP}
        self.api: Final = Api(client, auth=auth, hosts=hosts, sessions=sessions, pages=pages, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        root = scope.get("root_path", "")
        if root and scope.get("path") == root:
            # where it is mounted by hand, the path of the mount has no slash behind it
            scope = {**scope, "path": f"{root}/"}
        await self.api(scope, receive, send)

    def stop_waiting(self) -> None:
        """Let every stream end now; to be called before connections are waited for."""
        self.api.stop_waiting()

    async def close(self) -> None:
        """Stop, and return when nothing of the app runs any more."""
        await self.api.close()


def make_dashboard(
    client: Client,
    *,
    auth: Auth | None = None,
    tokens: str | Path | None = None,
    https: bool = True,
    insecure: bool = False,
    allowed_hosts: Iterable[str] = (),
    store: str = "",
) -> Dashboard:
    """Return the dashboard of `client`, an ASGI app to be mounted in a web application.

    It lets in whom `auth` knows, or who logs in with a token of the file `tokens`; with `insecure=True` everybody, and
    without any of them nobody. `allowed_hosts` are the names that it is called by, beside those of the loopback. The
    cookies of logins are for `https` alone, unless that is False. `store` is what the pages call the store.
    """
    door = entrance(
        auth=auth,
        tokens=tokens,
        https=https,
        insecure=insecure,
        allowed_hosts=allowed_hosts,
        clock=client.clock,
    )
    return Dashboard(client, auth=door.auth, sessions=door.sessions, hosts=door.hosts, store=store)
