"""Routes whose refusals are problems as JSON, wherever the app is mounted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from windlass.http.refusal import Refusal


class OnlyRoute(Route):
    """A route of one method, which no other one stands for: HEAD of a stream would never end."""

    def __init__(self, path: str, app: ASGIApp, *, name: str, method: str, allowed: Mapping[str, str]) -> None:
        """Lead `method` of `path` to `app`; `allowed` tells the methods of each path."""
        super().__init__(path, app, name=name, methods=(method,))
        self.method: Final = method
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


class StraightRouter(Router):
    """Finds a path without parameters by one look, all others by trying each; what leads nowhere is refused."""

    def __init__(self, lifespan: Lifespan[Any]) -> None:
        """Begin with no routes."""
        super().__init__(redirect_slashes=False, default=no_route, lifespan=lifespan)
        self._straight: dict[tuple[str, str], OnlyRoute] = {}

    def lead(self, routes: Sequence[OnlyRoute]) -> None:
        """Answer by `routes` as well; of two that lead the same way the first does."""
        self.routes.extend(routes)
        for route in routes:
            if not route.param_convertors:
                self._straight.setdefault((route.method, route.path), route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        route = self._found(scope) if scope["type"] == "http" else None
        if route is None:
            await super().__call__(scope, receive, send)
            return
        # as Starlette does: whoever watches the app from outside names requests by their route
        scope["route"], scope["endpoint"] = route, route.endpoint
        scope.setdefault("path_params", {})
        await route.app(scope, receive, send)

    def _found(self, scope: Scope) -> OnlyRoute | None:
        return self._straight.get((scope["method"], scope["path"].removeprefix(scope.get("root_path", ""))))


async def no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a path that leads nowhere."""
    del scope, receive, send
    message = "there is nothing at this path: /api/v1/openapi.json tells what there is"
    raise Refusal(404, "not_found", message)
