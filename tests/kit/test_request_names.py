from windlass.kit.request_names import RequestNames
from windlass.system import SystemRng


def test_names_rise_and_are_never_those_of_another_process() -> None:
    here, there = RequestNames(SystemRng()), RequestNames(SystemRng())

    ours, theirs = [here.new() for _ in range(300)], [there.new() for _ in range(300)]

    assert ours == sorted(set(ours))
    assert not set(ours) & set(theirs)
