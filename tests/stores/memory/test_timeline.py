"""The latest members of a timeline first."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.stores.memory.timeline import LONG_AGO, Timeline
from windlass.testing.clock import START


@dataclass(eq=False)
class Member:
    seq: int
    place: int = 0


def seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


@given(times=st.lists(st.integers(0, 9), max_size=30), gone=st.sets(st.integers(0, 29)), until=st.integers(-1, 10))
def test_the_latest_come_first_however_they_came(times: list[int], gone: set[int], until: int) -> None:
    timeline: Timeline[Member] = Timeline()
    members = [Member(seq) for seq in range(len(times))]
    for member, at in zip(members, times, strict=True):
        timeline.join(START + seconds(at), member)
    here = [(at, member.seq) for member, at in zip(members, times, strict=True) if member.seq not in gone]
    for seq in gone.intersection(range(len(times))):
        timeline.leave(members[seq])

    every = [(at, member.seq) for at, member in timeline.latest(None)]
    some = [(at, member.seq) for at, member in timeline.latest(START + seconds(until))]

    latest = sorted(((START + seconds(at), seq) for at, seq in here), reverse=True)
    assert every == latest
    assert some == [each for each in latest if each[0] <= START + seconds(until)]


@pytest.mark.parametrize("count", [0, 3])
def test_nothing_is_before_all_times(count: int) -> None:
    timeline: Timeline[Member] = Timeline()
    for seq in range(count):
        timeline.join(START, Member(seq))

    assert list(timeline.latest(LONG_AGO)) == []
