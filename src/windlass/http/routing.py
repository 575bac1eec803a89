"""Routes whose refusals are problems as JSON, wherever the app is mounted."""

from collections.abc import Mapping
from typing import Final

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.http.refusal import Refusal


class OnlyRoute(Route):
    """A route of one method, which no other one stands for: HEAD of a stream would never end."""

    def __init__(self, path: str, app: ASGIApp, *, name: str, method: str, allowed: Mapping[str, str]) -> None:
        """Lead `method` of `path` to `app`; `allowed` tells the methods of each path."""
        super().__init__(path, app, name=name, methods=(method,))
        self.methods = {method}
        self._allowed: Final = allowed

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse another method."""
        if scope["method"] in (self.methods or ()):
            await self.app(scope, receive, send)
            return
        allow = self._allowed[self.path]
        message = f"{scope['method'][:20]} means nothing here: use {allow}"
        raise Refusal(405, "method_not_allowed", message, {"Allow": allow})


async def no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a path that leads nowhere."""
    del scope, receive, send
    message = "there is nothing at this path: /api/v1/openapi.json tells what there is"
    raise Refusal(404, "not_found", message)
