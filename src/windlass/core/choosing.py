"""Choice of the jobs that a claim gives: the first of all lanes, as far as accounts have room."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, NamedTuple, Protocol, TypeVar

J = TypeVar("J")
J_co = TypeVar("J_co", covariant=True)


class Lane(Protocol[J_co]):
    """Jobs that wait in one line, as entries that sort in the order in which they are given, also between lanes.

    No two entries are equal.
    """

    @property
    def accounts(self) -> Sequence[str]:
        """The accounts from whose room each job takes one."""
        ...

    def head(self) -> J_co | None:
        """Return the first entry; None when there is none."""
        ...

    def leave_head(self) -> None:
        """Let the next entry be the first: this one was picked."""
        ...


class Park(NamedTuple):
    """A lane that gives nothing more, and the account without room that it waits for."""

    lane: Lane[Any]
    account: str


NO_ACCOUNTS: Final[Mapping[str, int]] = {}
"""For a claim of jobs that no account bounds."""


def choose(heads: Iterable[Lane[J]], accounts: Mapping[str, int], free: int) -> tuple[list[J], list[Park]]:
    """Return the entries of up to `free` jobs to give, in their order, and the lanes to park.

    `accounts` says how many more jobs each account allows; one that is not in it allows any number. A lane is parked
    when its first job would be picked and an account of it has no room.
    """
    picks: list[J] = []
    parks: list[Park] = []
    # entries differ, so lanes are never compared
    ahead: list[tuple[Any, Lane[J]]] = [(entry, lane) for lane in heads if (entry := lane.head()) is not None]
    heapify(ahead)
    room = dict(accounts)
    while ahead and len(picks) < free:
        entry, lane = ahead[0]
        if room and (full := _take_room(lane, room)) is not None:
            parks.append(Park(lane, full))
            heappop(ahead)
            continue
        picks.append(entry)
        lane.leave_head()
        if len(picks) == free:
            break
        if (following := lane.head()) is None:
            heappop(ahead)
        else:
            heapreplace(ahead, (following, lane))
    return picks, parks


def _take_room(lane: Lane[Any], room: dict[str, int]) -> str | None:
    """Take one from the room of each account of a lane; return one that has none, and take nothing then."""
    full = next((account for account in lane.accounts if room.get(account, 1) <= 0), None)
    if full is None:
        for account in lane.accounts:
            if account in room:
                room[account] -= 1
    return full
