from dataclasses import replace

from windlass.core.schedule import Schedule
from windlass.schedule.aside import Aside
from windlass.testing.conformance.given import a_schedule


def revised(schedule: Schedule) -> Schedule:
    return replace(schedule, revision=schedule.revision + 1)


def test_a_schedule_is_left_alone_until_its_time() -> None:
    aside, schedule = Aside(), a_schedule()
    before = aside.until(schedule)

    aside.leave(schedule, 7.0)

    assert (before, aside.until(schedule), len(aside)) == (None, 7.0, 1)


def test_a_change_of_the_schedule_ends_it() -> None:
    aside, schedule = Aside(), a_schedule()

    aside.leave(schedule, 7.0, failures=3)

    assert aside.failures(schedule) == 3
    assert aside.until(revised(schedule)) is None
    assert aside.failures(revised(schedule)) == 0


def test_those_that_are_no_longer_due_are_forgotten() -> None:
    aside, one, other = Aside(), a_schedule("one"), a_schedule("other")
    aside.leave(one, 7.0)
    aside.leave(other, 7.0)

    aside.keep(["other", "third"])

    assert (aside.until(one), aside.until(other), len(aside)) == (None, 7.0, 1)
