"""The choice of the jobs that a claim gives."""

from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.choosing import NO_ACCOUNTS, Park, choose

Entry: TypeAlias = tuple[int, int]
"""A job: its urgency and its number."""


class Jobs:
    """A lane of some jobs."""

    def __init__(self, *jobs: Entry, accounts: Sequence[str] = ()) -> None:
        self.jobs = sorted(jobs)
        self.accounts = accounts
        self.taken = 0

    def head(self) -> Entry | None:
        return self.jobs[self.taken] if self.taken < len(self.jobs) else None

    def leave_head(self) -> None:
        self.taken += 1


def lanes_of(lines: list[list[int]], accounts: Sequence[set[str]] = ()) -> list[Jobs]:
    """Return lanes with jobs of these urgencies, each with a number of its own."""
    named = [*accounts, *(set[str]() for _ in lines)]
    return [
        Jobs(*((urgency, 100 * lane + job) for job, urgency in enumerate(line)), accounts=sorted(named[lane]))
        for lane, line in enumerate(lines)
    ]


lines = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=5)
names = st.sets(st.sampled_from(["a", "b", "c"]), max_size=2)
rooms = st.dictionaries(st.sampled_from(["a", "b", "x"]), st.integers(0, 4), min_size=1)


@given(lines=lines, free=st.integers(-1, 12))
def test_without_accounts_the_first_of_all_lanes_are_picked(lines: list[list[int]], free: int) -> None:
    lanes = lanes_of(lines)

    picks, parks = choose(lanes, NO_ACCOUNTS, free)

    assert picks == sorted(job for lane in lanes for job in lane.jobs)[: max(free, 0)]
    assert parks == []
    assert sum(lane.taken for lane in lanes) == len(picks)


@given(lines=lines, free=st.integers(0, 12), rooms=rooms)
def test_accounts_that_no_lane_names_change_nothing(lines: list[list[int]], free: int, rooms: dict[str, int]) -> None:
    assert choose(lanes_of(lines), rooms, free) == choose(lanes_of(lines), NO_ACCOUNTS, free)


@given(lines=lines, named=st.lists(names, min_size=5, max_size=5), free=st.integers(0, 12), rooms=rooms)
def test_no_account_gives_more_than_its_room_and_no_job_passes_another_of_its_lane(
    lines: list[list[int]], named: list[set[str]], free: int, rooms: dict[str, int]
) -> None:
    lanes = lanes_of(lines, named)

    picks, parks = choose(lanes, rooms, free)

    assert picks == sorted(job for lane in lanes for job in lane.jobs[: lane.taken])
    for account, room in rooms.items():
        used = sum(lane.taken for lane in lanes if account in lane.accounts)
        assert used <= room
        assert all(used == room for park in parks if park.account == account)
    parked = [park.lane for park in parks]
    assert len(picks) == free or all(lane.head() is None or lane in parked for lane in lanes)


def test_a_lane_without_room_is_parked_at_the_account_and_others_go_on() -> None:
    full, other = Jobs((1, 1), (3, 3), (5, 5), accounts=["one", "two"]), Jobs((2, 2), (4, 4))

    assert choose([full, other], {"two": 1}, 9) == ([(1, 1), (2, 2), (4, 4)], [Park(full, "two")])


def test_a_lane_whose_turn_does_not_come_is_not_parked() -> None:
    assert choose([Jobs((1, 1)), Jobs((2, 2), accounts=["full"])], {"full": 0}, 1) == ([(1, 1)], [])


def test_an_account_that_is_not_known_allows_any_number() -> None:
    picks, parks = choose([Jobs((1, 1), (2, 2), accounts=["unknown"])], {"other": 0}, 9)

    assert (len(picks), parks) == (2, [])
