"""The position of a dead job, as a text."""

import pytest

from windlass.core.errors import InvalidValue
from windlass.core.looks import NO_TIME, Death


@pytest.mark.parametrize("death", [Death(1767225600000000, 42), Death(0, 0), Death(-5, -3), Death(NO_TIME, -NO_TIME)])
def test_a_position_is_read_as_it_was_written(death: Death) -> None:
    assert Death.read(str(death)) == death


@pytest.mark.parametrize(
    "text", ["", "-", "1", "1-", "-1", "1-2-3", "1---2", "x-1", "1-1\n", " 1-1", "\u0661-1", f"{2**63}-1", f"1-{2**63}"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="such as '1767225600000000-42', not"):
        Death.read(text)
