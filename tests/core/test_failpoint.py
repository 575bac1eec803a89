from collections.abc import Iterator

import pytest

from windlass.core import failpoint


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    failpoint.disarm()
    failpoint.restore()


def test_a_point_that_is_not_armed_does_nothing() -> None:
    failpoint.arm("other", lambda: pytest.fail("the wrong point"))

    failpoint.reach("point")


def test_an_armed_point_acts_each_time_it_is_reached() -> None:
    reached: list[int] = []
    failpoint.arm("point", lambda: reached.append(1))

    failpoint.reach("point")
    failpoint.reach("point")

    assert reached == [1, 1]


def test_what_a_point_raises_reaches_the_program() -> None:
    def fail() -> None:
        raise OSError

    failpoint.arm("point", fail)

    with pytest.raises(OSError):  # noqa: PT011 - the very one that was armed
        failpoint.reach("point")


@pytest.mark.parametrize("which", ["point", None])
def test_a_point_can_be_disarmed_alone_or_with_all_others(which: str | None) -> None:
    failpoint.arm("point", lambda: pytest.fail("it is still armed"))

    failpoint.disarm(which)
    failpoint.disarm(which)

    failpoint.reach("point")


def test_a_safeguard_holds_unless_a_test_takes_it_out() -> None:
    assert not failpoint.removed("fence")

    failpoint.remove("fence")

    assert failpoint.removed("fence")
    assert not failpoint.removed("other")


def test_every_safeguard_can_be_put_back() -> None:
    failpoint.remove("fence")

    failpoint.restore()

    assert not failpoint.removed("fence")
