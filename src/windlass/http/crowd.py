"""The open connections of a port: how many there may be, and which of them make room for others."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final, Protocol

MOST_CONNECTIONS: Final = 1_000
MOST_PER_ADDRESS: Final = 250
"""Connections of one address that have not been authenticated. Those of a proxy are, as soon as they have carried a
request with a token."""
WORTH_A_LOOK: Final = 0.1
"""Seconds after which it is looked again who makes room: by then a caller has said what it wants."""
SHARE: Final = "windlass.share"
"""Where the scope of a request has the number of requests that its caller may have under way."""
CROWDED_TIME: Final = 3.0
"""Seconds in which a request must have been said when it is crowded."""


class Member(Protocol):
    """A connection, as far as it counts who is closed first."""

    @property
    def address(self) -> str:
        """Where it comes from: an address, or all that one customer of a network has."""
        ...

    @property
    def is_authenticated(self) -> bool:
        """Whether it has carried an authenticated request."""
        ...

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way: said whole, and its answer is taken."""
        ...

    @property
    def idle_since(self) -> float:
        """When it was opened, or its last request was answered, by the time of the event loop."""
        ...

    def drop(self) -> None:
        """Close it now."""
        ...


class Crowd:
    """The connections of one port.

    When there are more than there may be, the first to be closed are those that ask nothing and have never been
    authenticated, then others that were not, then those that rest between two requests; of each the oldest first. So
    whoever opens connections and says nothing makes room for those who speak. A request that is under way for somebody
    who is known is never cut off.
    """

    def __init__(self, most: int = MOST_CONNECTIONS, *, most_per_address: int = MOST_PER_ADDRESS) -> None:
        """Let in `most` connections, and `most_per_address` from each address that have not been authenticated."""
        self._most = most
        self._most_per_address = most_per_address
        self._members: dict[Member, str] = {}
        self._by_address: Counter[str] = Counter()
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members))

    def enter(self, member: Member) -> None:
        """Count a new connection. Those that come together are let speak before one of them is closed."""
        self._members[member] = member.address
        self._by_address[member.address] += 1
        if len(self._members) > 2 * self._most:
            self._make_room()
            if len(self._members) > 2 * self._most:
                self._drop(member)
        elif len(self._members) > self._crowded or self._by_address[member.address] > self._most_per_address:
            self._look_in(WORTH_A_LOOK)

    def leave(self, member: Member) -> None:
        """Count a connection no more; harmless when it is not counted."""
        address = self._members.pop(member, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        if not self._members and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def has_room_for(self, member: Member) -> bool:
        """Whether a request of this connection may be answered: an authenticated one always may."""
        if len(self._members) <= self._most or member.is_authenticated:
            return True
        # all who ask nothing will have made room when it is looked again
        return sum(each.is_asking for each in self._members if each is not member) < self._most

    @property
    def share(self) -> int:
        """The requests that one caller may have under way: a tenth of the connections is left to other callers."""
        return self._most - self._most // 10

    @property
    def _crowded(self) -> int:
        return self._most * 3 // 4

    def _look_in(self, seconds: float) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._looking = None
        self._make_room()
        if len(self._members) > self._crowded:
            self._look_in(CROWDED_TIME / 3)

    def _make_room(self) -> None:
        """Close connections until there are no more than there may be, as far as any can be closed."""
        silent = [each for each in self._members if not each.is_asking and not each.is_authenticated]
        for member in [*self._beyond_their_address(silent), *self._late(silent)]:
            self._drop(member)
        for member in self._in_order(silent):
            if len(self._members) <= self._most:
                return
            self._drop(member)

    def _beyond_their_address(self, silent: list[Member]) -> Iterator[Member]:
        """Give the oldest silent connections of each address that has more than it may have."""
        authenticated = Counter(each.address for each in self._members if each.is_authenticated)
        beyond = {
            address: count - authenticated[address] - self._most_per_address
            for address, count in self._by_address.items()
            if count > self._most_per_address
        }
        for member in silent:
            if beyond.get(member.address, 0) > 0:
                beyond[member.address] -= 1
                yield member

    def _late(self, silent: list[Member]) -> Iterator[Member]:
        """Give those that have said nothing for too long, where it is crowded."""
        if len(self._members) > self._crowded:
            before = asyncio.get_running_loop().time() - CROWDED_TIME
            yield from (each for each in silent if each.idle_since < before)

    def _in_order(self, silent: list[Member]) -> Iterator[Member]:
        """Give the connections that can be closed, those first that are missed least."""
        yield from silent
        yield from [each for each in self._members if not each.is_authenticated]
        resting = [each for each in self._members if not each.is_asking]
        yield from sorted(resting, key=lambda each: each.idle_since)

    def _drop(self, member: Member) -> None:
        if member in self._members:
            self.leave(member)
            member.drop()
