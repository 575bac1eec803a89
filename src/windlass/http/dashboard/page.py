"""A view, and how its URL is read."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from windlass.api.roles import Role
from windlass.core.stats import total
from windlass.http.dashboard.page_query import page_reader
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View


class Page:
    """A view whose URL can be read."""

    def __init__(self, view: View[Any]) -> None:
        self.name: Final[str] = view.name
        self.title: Final[str] = view.title
        self.path: Final[str] = view.path
        self.roles: Final[Collection[Role]] = view.roles
        self.regions: Final[Sequence[str]] = view.regions
        self._view = view
        self._read = page_reader(view.asks)

    async def facts(self, seen: Seen, query: bytes) -> Facts:
        """Return what there is to show, what was asked for, and what every page shows."""
        asked = self._read(query)
        found = await self._view.look(seen, asked)
        return {**found, "asked": asked, "counts": total(await seen.queues())}

    def check(self, query: bytes) -> None:
        """Refuse a query that cannot be read."""
        self._read(query)
