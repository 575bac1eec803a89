"""What the handlers of a child process need, opened when the first of them runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from windlass.engine.executors.find import ChildApp
from windlass.engine.executors.held import Held


class Lifespan(NamedTuple):
    """The open lifespan of one app."""

    app: ChildApp
    held: Held[Mapping[type, Any]]
    provided: Mapping[type, Any]


class Lifespans:
    """The lifespan of each app whose handlers run here, opened once."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._open: list[Lifespan] = []

    async def of(self, app: ChildApp) -> Mapping[type, Any]:
        """Return what there is for the handlers of `app`."""
        for lifespan in self._open:
            if lifespan.app is app:
                return lifespan.provided
        held = Held(app.open_lifespan())
        provided = await held.open()
        self._open.append(Lifespan(app, held, provided))
        return provided

    async def close_last(self) -> bool:
        """Close what was opened last, and its app; return False when nothing is open."""
        if not self._open:
            return False
        app, held, _ = self._open.pop()
        try:
            await held.close()
        finally:
            await app.close()
        return True
