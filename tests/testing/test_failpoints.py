"""Faults at named points."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from windlass.core.errors import InvalidValue
from windlass.core.failpoint import disarm, reach
from windlass.testing import Faulted, SeededRng, arm_from_environment
from windlass.testing.failpoints import VARIABLE, fault


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    disarm()


def test_nothing_is_armed_by_default() -> None:
    assert arm_from_environment({}) == {}
    reach("some.point")


def test_a_point_may_raise_each_time() -> None:
    armed = arm_from_environment({VARIABLE: "some.point=raise"})

    for _ in range(2):
        with pytest.raises(Faulted, match=r"some\.point"):
            reach("some.point")
    reach("other.point")

    assert (armed["some.point"].reached, armed["some.point"].fired) == (2, 2)


def test_a_point_may_raise_a_builtin_error() -> None:
    arm_from_environment({VARIABLE: "some.point=raise:OSError"})

    with pytest.raises(OSError, match=r"some\.point"):
        reach("some.point")


@pytest.mark.parametrize("when, fired", [("", [1, 2, 3, 4]), (";once", [1]), (";nth=3", [3]), (";prob:0,1", [])])
def test_a_fault_happens_when_it_is_told_to(when: str, fired: list[int]) -> None:
    armed = fault(f"some.point=raise{when}")
    seen: list[int] = []
    for n in range(1, 5):
        try:
            armed()
        except Faulted:
            seen.append(n)

    assert (seen, armed.reached) == (fired, 4)


def test_chance_repeats_with_its_seed() -> None:
    def draws() -> list[bool]:
        armed = fault("some.point=sleep:0;prob:0.5,42")
        fired: list[bool] = []
        for _ in range(50):
            before = armed.fired
            armed()
            fired.append(armed.fired > before)
        return fired

    assert draws() == draws()
    assert 10 < sum(draws()) < 40


@pytest.mark.parametrize(
    "entry",
    ["nothing", "=raise", "p=", "p=explode", "p=raise:NoSuchError", "p=raise:print", "p=sleep:x", "p=kill;sometimes"],
)
def test_what_cannot_be_read_is_refused(entry: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be read"):
        arm_from_environment({VARIABLE: entry})


def test_a_process_kills_itself_at_its_point() -> None:
    program = (
        "from windlass.core.failpoint import reach\n"
        "from windlass.testing import arm_from_environment\n"
        "arm_from_environment()\n"
        "for n in range(5):\n"
        "    print(n, flush=True)\n"
        "    reach('loop')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], env={VARIABLE: "loop=kill;nth=3"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1", "2"]


def test_seeded_chance_repeats() -> None:
    one, other = SeededRng(7), SeededRng(7)

    assert [one.random() for _ in range(5)] == [other.random() for _ in range(5)]
    assert one.token_bytes(16) == other.token_bytes(16)
    assert SeededRng(8).token_bytes(16) != SeededRng(7).token_bytes(16)
