import pytest

from windlass.client.new_lines import new_lines
from windlass.core.job import LogLine
from windlass.testing.clock import START

A, B, C = (LogLine(START, "info", text, 1) for text in "abc")


@pytest.mark.parametrize(
    "told, now, new",
    [
        ((), (A, B), (A, B)),
        ((A,), (A,), ()),
        ((A,), (A, A), (A,)),
        ((A, B), (B, C), (C,)),
        ((A, B, A), (A, C), (C,)),
        ((A, B), (C,), (C,)),
        ((A, B), (), ()),
    ],
)
def test_new_lines_are_those_after_what_is_left_of_the_told(
    told: tuple[LogLine, ...], now: tuple[LogLine, ...], new: tuple[LogLine, ...]
) -> None:
    assert new_lines(told, now) == new
