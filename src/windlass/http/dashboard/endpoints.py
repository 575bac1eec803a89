"""The ASGI apps of a page: the page itself, and the stream of what changes on it."""

from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.core.errors import WindlassError
from windlass.core.ids import JobId, job_id
from windlass.http.auth import Auth, NoAuth, check_roles, identity_of
from windlass.http.dashboard.live import Live, Watched, Watcher
from windlass.http.dashboard.page import Page, without_blanks
from windlass.http.dashboard.rendering import Frame, Rendering
from windlass.http.dashboard.seen import Seen, looker_of
from windlass.http.reply import Reply, refused
from windlass.http.shared import Shared
from windlass.http.streaming import Streaming
from windlass.http.wakes import Wakes

HTML: Final = "text/html; charset=utf-8"
PAGE: Final = 2 * 1024 * 1024
"""Bytes that are reserved for what a page looks at: a job with its payload and its result."""
LIVE: Final = "/live"
"""Below it each page has its stream."""


class PageEndpoint:
    """Answers with a whole page, as it is now."""

    def __init__(self, shared: Shared, auth: Auth, page: Page, rendering: Rendering, live: Live) -> None:
        self._shared = shared
        self._named = not isinstance(auth, NoAuth)
        self._page = page
        self._rendering = rendering
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look, and answer."""
        del receive
        identity = identity_of(scope)
        page, looker = self._page, looker_of(identity)
        check_roles(identity, page.roles)
        await self._shared.open()
        query = without_blanks(scope["query_string"])
        async with self._shared.reading.page(identity.name, PAGE) as reading:
            seen = Seen(self._shared.client, looker, job_id=_job_id(scope), kept=self._live.kept, reading=reading)
            facts = await page.facts(seen, query)
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root)
        frame = Frame(
            root,
            page.name,
            page.title,
            looker,
            who=identity.name if self._named else None,
            live=f"{root}{LIVE}{path}" + (f"?{query.decode()}" if query else ""),
            logs_out=self._rendering.logs_in,
        )
        await Reply(200, self._rendering.page(frame, facts), content_type=HTML).send(send)


class LiveEndpoint:
    """Streams what changes on a page to one browser for each request."""

    def __init__(self, shared: Shared, auth: Auth, page: Page, live: Live) -> None:
        self._shared = shared
        self._page = page
        self._live = live
        self._streaming = Streaming(shared, auth)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the browser goes or the process stops."""
        identity = identity_of(scope)
        check_roles(identity, self._page.roles)
        query = without_blanks(scope["query_string"])
        self._page.check(query)
        self._streaming.check_room(scope)
        try:
            await self._shared.open()
        except WindlassError as error:
            await refused(error).send(send)
            return
        watched = Watched(self._page.name, _job_id(scope), query, looker_of(identity), scope.get("root_path", ""))
        watcher = Watcher(Wakes(self._shared.client.clock))
        with self._live.watchers.subscribed(watched, watcher):
            await self._streaming.stream(scope, receive, send, watcher)


def _job_id(scope: Scope) -> JobId | None:
    named = scope["path_params"].get("id")
    return None if named is None else job_id(named)
