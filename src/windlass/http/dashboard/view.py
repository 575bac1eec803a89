"""What one page is: where it is, what can be asked of it, and what it looks at."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from windlass.api.roles import Role
from windlass.http.dashboard.seen import Seen

A = TypeVar("A", bound=msgspec.Struct)

Facts: TypeAlias = Mapping[str, Any]
"""What was found, by the names that the template has for it."""


class View(ABC, Generic[A]):
    """One page. Its template is `NAME.html`, and is given the facts, and what was asked for as `asked`."""

    name: ClassVar[str]
    title: ClassVar[str]
    path: ClassVar[str]
    roles: ClassVar[Collection[Role]]
    """Who may see it: those who may call the operation of the API that tells the same."""
    asks: type[A]
    """The parameters of its URL."""
    regions: ClassVar[Sequence[str]]
    """The blocks of its template that are sent again when they change. What they show hangs on the facts alone, never
    on the time of day: a page lets its own times go on."""

    @abstractmethod
    async def look(self, seen: Seen, asked: A) -> Facts:
        """Return what there is to show; it is looked at again each interval while somebody watches."""
