"""Members in the order of a time: what waits, what comes due, whose lease runs out, what ended first."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush, merge
from itertools import compress, count, islice
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from windlass.kit.moves.record import NOWHERE

SLACK: Final = 64
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_places: Final = count(1)


class Placed(Protocol):
    """What can stand in a timeline, in one at a time; `place` is the number of its joining, never given twice."""

    seq: int
    place: int


T = TypeVar("T", bound=Placed)


class Timeline(Generic[T]):
    """Members by (time, sequence number). Joining at the end, reading the first and leaving cost the same at any size.

    Whoever leaves only forgets its place. Places without a member are skipped when they come to the front, and
    thrown out together when they are the greater part, so they never gather.
    """

    __slots__ = ("_late", "_latest", "_orderly", "_places", "_times", "members")

    def __init__(self) -> None:
        # Nearly everybody joins at the end, which needs no heap. Columns instead of tuples: the garbage collector
        # looks at every tuple again and again, which costs more than all the rest when there are a million.
        self._orderly: deque[T] = deque()
        self._places: deque[int] = deque()
        self._times: deque[datetime] = deque()
        self._latest = LONG_AGO, 0
        self._late: list[tuple[datetime, int, int, T]] = []
        self.members = 0

    def join(self, at: datetime, member: T) -> None:
        """Let `member`, which stands nowhere, stand here at `at`."""
        member.place = place = next(_places)
        self.members += 1
        order = at, member.seq
        if order < self._latest and self._orderly:
            heappush(self._late, (at, member.seq, place, member))
            return
        self._latest = order
        self._orderly.append(member)
        self._places.append(place)
        self._times.append(at)

    def leave(self, member: T) -> None:
        """Let `member` stand nowhere."""
        member.place = NOWHERE
        self.members -= 1
        if len(self._orderly) + len(self._late) > 2 * self.members + SLACK:
            self._compact()

    def first(self) -> T | None:
        """Return the member with the earliest time."""
        orderly, late = self._orderly, self._late
        while orderly and orderly[0].place != self._places[0]:
            self._drop_first()
        while late and late[0][3].place != late[0][2]:
            heappop(late)
        if not late:
            return orderly[0] if orderly else None
        if orderly and (self._times[0], orderly[0].seq) < late[0][:2]:
            return orderly[0]
        return late[0][3]

    def ahead(self, at: datetime, seq: int, most: int) -> int:
        """Count the members before this time and sequence number, up to `most`."""
        order = at, seq
        count = sum(member.place == place and (time, number) < order for time, number, place, member in self._late)
        for time, place, member in zip(self._times, self._places, self._orderly, strict=True):
            if count >= most or (time, member.seq) >= order:
                break
            count += member.place == place
        return min(count, most)

    def latest(self, until: datetime | None) -> Iterator[tuple[datetime, T]]:
        """Give the members whose time is not after `until`, or all, with their times, the latest first."""
        late = (entry for entry in self._late if until is None or entry[0] <= until)
        after = 0 if until is None else len(self._times) - bisect_right(self._times, until)
        columns = (islice(reversed(column), after, None) for column in (self._times, self._places, self._orderly))
        orderly = ((time, member.seq, place, member) for time, place, member in zip(*columns, strict=True))
        found = merge(sorted(late, reverse=True), orderly, key=itemgetter(0, 1), reverse=True)
        return ((time, member) for time, _, place, member in found if member.place == place)

    def until(self, at: datetime | None) -> list[T]:
        """Return the members whose time is not after `at`, or all, the earliest first."""
        found = [entry for entry in self._late if at is None or entry[0] <= at]
        for time, place, member in zip(self._times, self._places, self._orderly, strict=True):
            if at is not None and time > at:
                break
            found.append((time, member.seq, place, member))
        return [member for _, _, place, member in sorted(found) if member.place == place]

    def _drop_first(self) -> None:
        self._orderly.popleft()
        self._places.popleft()
        self._times.popleft()

    def _compact(self) -> None:
        kept = [place == member.place for place, member in zip(self._places, self._orderly, strict=True)]
        self._orderly = deque(compress(self._orderly, kept))
        self._places = deque(compress(self._places, kept))
        self._times = deque(compress(self._times, kept))
        self._late = [entry for entry in self._late if entry[3].place == entry[2]]
        heapify(self._late)
