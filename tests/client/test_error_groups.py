"""Dead jobs by what ended them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.given_dead import SECOND, a_dead_job
from windlass.client.error_groups import LONGEST, NO_ERROR, ErrorGroups, error_name, error_type, is_type, message_of
from windlass.client.group_look import look_at_groups, named
from windlass.client.look_back import AT_ONCE, FIRST, READ, look_back
from windlass.core.job import Job
from windlass.core.looks import JobPage
from windlass.testing.clock import START, FakeClock


@pytest.mark.parametrize(
    "error, name",
    [
        ("ValueError: no 7", "ValueError"),
        ("app.errors.Refused: no", "app.errors.Refused"),
        ("make.<locals>.Boom: no", "make.<locals>.Boom"),
        ("Timeout", "Timeout"),
        ("ValueError:", "ValueError"),
        ("host 10 said no: 5 times", "host # said no: # times"),
        ("host  7\nsaid no: 12 times", "host # said no: # times"),
        ("12: 30", "#: #"),
        ("no order 01938c6e-1111-7000-8000-0000000000aa", "no order #"),
        ("object at 0x7fe1 of deadbeef", "object at # of deadbeef"),
        (" ValueError: no", "ValueError: no"),
        (" ValueError", "(ValueError)"),
        ("", NO_ERROR),
        (None, NO_ERROR),
        (" \n", NO_ERROR),
    ],
)
def test_an_error_is_named_by_its_type_or_by_its_text_without_numbers(error: str | None, name: str) -> None:
    assert error_name(error) == name


def test_a_long_text_has_a_short_name() -> None:
    assert len(error_name("no " * 3_000)) <= LONGEST
    assert error_type("x" * 201) is None
    assert len(error_name("x" * 8_000)) <= LONGEST


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_type_is_what_the_filter_finds(error: str, other: str) -> None:
    found = error_type(error)
    if found is None:
        return

    for text in (error, other, f"{found}{other}", f"{found}:{other}"):
        assert (text == found or text.startswith(f"{found}:")) is (error_type(text) == found)


@given(st.text(max_size=300))
def test_the_name_of_a_text_is_never_that_of_a_type(error: str) -> None:
    assert is_type(error_name(error)) is (error_type(error) is not None)


@pytest.mark.parametrize(
    "error, message",
    [("Boom: it: 7", "it: 7"), ("Boom", ""), ("no 7: it", "no 7: it"), (None, ""), ("B: " + "x" * 999, "x" * 397)],
)
def test_a_message_is_what_stands_behind_the_type(error: str | None, message: str) -> None:
    assert message_of(error) == message


def test_a_group_knows_what_is_in_it_and_not_what_that_carries() -> None:
    jobs = [
        a_dead_job(3, "Boom: 3", queue="b", kind="k"),
        a_dead_job(2, "no 2"),
        a_dead_job(1, "Boom: 1", queue="a"),
    ]

    groups = ErrorGroups(jobs)

    boom, text = groups.in_order()
    assert (boom.name, boom.type, boom.count, boom.said) == ("Boom", "Boom", 2, "3")
    assert (boom.queues, boom.kind_names, boom.ids) == ({"a", "b"}, ["(raw)", "k"], [jobs[0].id, jobs[2].id])
    assert (boom.first_at, boom.last_at, boom.newest_at) == (START + SECOND, START + 3 * SECOND, START + 3 * SECOND)
    assert (boom.example.id, boom.example.payload, boom.example.result) == (jobs[0].id, b"", None)
    assert (text.name, text.type, groups.count) == ("no #", None, 3)
    assert groups.named("no #") is text


def test_the_example_of_a_group_is_the_job_that_died_last() -> None:
    first, last, before = (a_dead_job(seq, f"Boom: {seq}") for seq in (3, 2, 1))
    last = last._replace(finished_at=START + 9 * SECOND)
    same = a_dead_job(4, "Boom: 4")._replace(finished_at=last.finished_at)

    [group] = ErrorGroups([first, last, before]).in_order()
    [with_same] = ErrorGroups([last, same, first]).in_order()

    assert (group.example.id, group.said, group.last_at) == (last.id, "2", START + 9 * SECOND)
    assert (group.example.payload, group.ids) == (b"", [first.id, last.id, before.id])
    assert with_same.example.id == same.id


class Steps:
    """Jobs that are looked at step by step, and what each step was asked for."""

    def __init__(self, count: int, size: int = 10) -> None:
        self.asked: list[int] = []
        self.jobs = [
            a_dead_job(seq, f"error {'odd' * (seq % 2)}")._replace(payload=b"x" * size, result=None)
            for seq in range(count)
        ]

    async def __call__(self, before: int | None, limit: int) -> JobPage:
        self.asked.append(limit)
        end = len(self.jobs) if before is None else before
        found: list[Job] = self.jobs[max(0, end - limit) : end][::-1]
        return JobPage(found, found[-1].seq if end > limit else None)


async def test_a_look_ends_with_the_last_job_or_with_as_many_as_it_may() -> None:
    all_of_them = await look_at_groups(Steps(2_100), most=5_000, clock=FakeClock(), seconds=1)
    some = await look_at_groups(Steps(2_100), most=1_500, clock=FakeClock(), seconds=1)

    assert (all_of_them.groups.count, all_of_them.next) == (2_100, None)
    assert (some.groups.count, some.next) == (1_500, 600)


async def test_a_look_ends_when_its_time_is_up() -> None:
    clock = FakeClock()
    steps = Steps(9_000)

    async def slow(before: int | None, limit: int) -> JobPage:
        clock.advance(1)
        return await steps(before, limit)

    looked = await look_at_groups(slow, most=9_000, clock=clock, seconds=1.5)

    assert (looked.groups.count, steps.asked) == (FIRST + READ, [FIRST, READ])


async def test_of_jobs_that_carry_much_fewer_are_read_at_once() -> None:
    steps = Steps(70, size=AT_ONCE // 8)

    await look_at_groups(steps, most=5_000, clock=FakeClock(), seconds=1)

    assert steps.asked == [FIRST, 8, 8, 8]


async def test_the_jobs_of_one_group_are_found_among_others_page_by_page() -> None:
    steps = Steps(1_000)
    step = named(steps, "error odd")
    seqs: list[int] = []
    before: int | None = None
    while True:
        page = await look_back(step, limit=30, before=before, clock=FakeClock(), seconds=1)
        seqs += [job.seq for job in page.jobs]
        before = page.next
        if before is None:
            break

    assert seqs == list(range(999, 0, -2))
