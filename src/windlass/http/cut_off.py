"""A request that a stop cuts off ends without a word: it is no error of the app, and nobody is there to be answered."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class CutOff:
    """An ASGI app, run by uvicorn, whose requests may be cancelled; uvicorn would log each as a failure of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is cut off."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            cycle, task = getattr(send, "__self__", None), asyncio.current_task()
            if not isinstance(cycle, RequestResponseCycle) or task is None or not task.cancelling():
                raise
            # or uvicorn would miss the reply
            cycle.disconnected = True
