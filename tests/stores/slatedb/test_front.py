"""The front of an index, against the whole index in order."""

import asyncio
from bisect import bisect_left, insort
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.stores.slatedb import front
from windlass.stores.slatedb.front import FILL, MOST, Front

PREFIX = b"p"
Step: TypeAlias = tuple[str, int]


def key(number: int) -> bytes:
    return PREFIX + number.to_bytes(2)


class Rows:
    """A view of keys in order, with others before and behind."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.starts: list[bytes] = []

    async def get(self, key: bytes) -> bytes | None:
        raise NotImplementedError

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        assert not reverse
        self.starts.append(start)
        every = [b"o", *self.keys, b"q"]
        return [(each, b"") for each in every if start <= each < end][:limit]

    def add(self, key: bytes) -> None:
        insort(self.keys, key)

    def remove(self, key: bytes) -> None:
        del self.keys[bisect_left(self.keys, key)]


numbers = st.integers(0, 60)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), numbers),
        st.tuples(st.just("look"), st.integers(0, 25)),
        st.tuples(st.just("take"), st.integers(1, 8)),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=200)
@given(begun_with=st.sets(numbers), begins=st.booleans(), steps=steps)
def test_the_front_is_where_the_index_begins_whatever_comes_and_goes(
    begun_with: set[int],
    begins: bool,  # noqa: FBT001
    steps: list[Step],
) -> None:
    rows = Rows()
    for number in begun_with:
        rows.add(key(number))

    async def live() -> None:
        # what is before the first key need not be looked at
        found = Front(PREFIX, empty=not begun_with, begin=rows.keys[0] if begins and rows.keys else None)
        for what, number in steps:
            assert not rows.keys or PREFIX <= found.begin <= rows.keys[0]
            if what == "change":
                _change(rows, found, key(number))
                continue
            await found.fill(rows, number)
            assert not found.lacks(number)
            assert found.first(number) == rows.keys[:number]
            if what == "take":
                for each in found.first(number):
                    _change(rows, found, each)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(front, "MOST", 10)
        patch.setattr(front, "FILL", 5)
        asyncio.run(live())


def _change(rows: Rows, found: Front, key: bytes) -> None:
    """Let a key come that is not there, or go that is."""
    if key in rows.keys:
        rows.remove(key)
        found.remove(key)
        return
    rows.add(key)
    before = len(found.keys)
    found.add(key)
    # more than the most are there only where so many were asked for
    assert len(found.keys) <= max(before, 10)


def test_a_front_in_memory_is_bounded_while_the_index_grows() -> None:
    found = Front(PREFIX, empty=True)

    for number in reversed(range(2 * MOST + 10)):
        found.add(key(number))
        assert len(found.keys) <= MOST

    assert len(found.keys) >= FILL
    assert found.keys == [key(number) for number in range(len(found.keys))]
    assert not found.complete


async def test_what_was_read_once_is_not_walked_over_again() -> None:
    rows = Rows()
    for number in range(2 * FILL + 10):
        rows.add(key(number))
    found = Front(PREFIX, empty=False)

    while rows.keys:
        await found.fill(rows, 10)
        for each in found.first(10):
            rows.remove(each)
            found.remove(each)

    # each look begins where the last one has ended
    assert rows.starts == [PREFIX, key(FILL - 1) + b"\0", key(2 * FILL - 1) + b"\0"]
    assert found.complete
