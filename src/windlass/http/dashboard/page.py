"""A view, and how its URL is read."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec

from windlass.api.roles import Role
from windlass.core.stats import total
from windlass.http.asked import MOST_PARAMETERS, SEE, query_reader
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View
from windlass.http.refusal import Refusal


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


A = TypeVar("A", bound=msgspec.Struct)


def page_reader(asks: type[A]) -> Callable[[bytes], A]:
    """Return what makes a record of the query of a page; a field of a form that was left empty is not there."""
    read = query_reader(asks)

    def read_given(query: bytes) -> A:
        try:
            return read(without_blanks(query))
        except Refusal as refusal:
            raise _of_a_page(refusal) from None

    return read_given


def _of_a_page(refusal: Refusal) -> Refusal:
    # no document of the API tells what a page can be asked for
    told = refusal.problem.message.removesuffix(SEE)
    return Refusal(refusal.status, refusal.problem.error, f"{told}. Mend the address, or begin at the overview.")


def without_blanks(query: bytes) -> bytes:
    """Return a query without parameters that have no value; one that cannot be read stays as it is."""
    try:
        pairs = parse_qsl(query.decode("ascii"), errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return query
    return urlencode([(name, value.strip()) for name, value in pairs if value.strip()]).encode()
