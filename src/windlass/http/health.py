"""Whether this process lives, and whether it can serve."""

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.api.about import Health
from windlass.core.errors import WindlassError
from windlass.http.auth import Auth
from windlass.http.refusal import Refusal
from windlass.http.reply import RETRY_AFTER, Reply, encode
from windlass.http.request_headers import deciding_headers
from windlass.http.shared import Shared

LIVE: Final = "/health/live"
READY: Final = "/health/ready"

FRESH: Final = 2.0
"""Seconds that an answer of the store counts: however many ask, the store is asked this often at most."""
PATIENCE: Final = 5.0
"""Seconds after which a store that does not answer counts as away."""


class Live:
    """Answers as long as the event loop does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell that this process lives."""
        del scope, receive
        await Reply(200, encode(Health(ready=True))).send(send)


class Ready:
    """Answers whether the store does, and whether the services run; 503 when not.

    Anybody may ask, and learns yes or no; the reasons are told to whoever is known.
    """

    def __init__(self, shared: Shared, auth: Auth) -> None:
        self._shared = shared
        self._auth = auth
        self._looked_at = float("-inf")
        self._found: Sequence[str] = ()
        self._look: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell whether this process can serve."""
        del receive
        shared = self._shared
        reasons = [*await self._store()]
        if shared.services is not None and shared.services.id is None:
            reasons.append("its services do not run")
        if shared.stopping:
            reasons.append("it stops")
        shown = reasons if reasons and self._knows(scope) else []
        body = encode(Health(ready=not reasons, reasons=shown))
        await (Reply(503, body, RETRY_AFTER) if reasons else Reply(200, body)).send(send)

    def _knows(self, scope: Scope) -> bool:
        try:
            return self._auth.identify(deciding_headers(scope["headers"])) is not None
        except Refusal:
            return False

    async def _store(self) -> Sequence[str]:
        if asyncio.get_running_loop().time() - self._looked_at > FRESH:
            # all who ask at the same time share one look
            look = self._look = self._look or asyncio.ensure_future(self._ask())
            await asyncio.shield(look)
        return self._found

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._shared.open()
                await self._shared.client.store.paused(("health",))
            self._found = ()
        except TimeoutError:
            self._found = (f"the store has not answered within {PATIENCE:g} s",)
        except WindlassError as error:
            self._found = (f"the store: {error}",)
        finally:
            self._looked_at = asyncio.get_running_loop().time()
            self._look = None
