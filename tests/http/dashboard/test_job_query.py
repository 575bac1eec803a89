"""What a URL says of the list of jobs."""

from datetime import UTC, datetime

import pytest

from windlass.core.filters import JobFilter
from windlass.http.dashboard.job_query import JobsAsked, in_form, wanted

NINE = datetime(2026, 1, 31, 9, tzinfo=UTC)


def test_what_can_be_read_is_a_filter() -> None:
    read = wanted(JobsAsked(state="dead", queue="mail", since="2026-01-31T09:00", text="acme", before="17"))

    assert read.chosen == JobFilter(state="dead", queue="mail", since=NINE)
    assert (read.text, read.before, read.problems) == ("acme", 17, {})


@pytest.mark.parametrize(
    "asked, field, said",
    [
        (JobsAsked(state="done"), "state", "state is one of scheduled, pending"),
        (JobsAsked(queue="a b"), "queue", "queue 'a b' has the character ' '"),
        (JobsAsked(kind="k" * 201), "kind", "has 201 characters"),
        (JobsAsked(parent_id="7"), "parent_id", "a job id is a UUID, not '7'"),
        (JobsAsked(since="yesterday"), "since", "a time is written as 2026-01-31T09:00, not 'yesterday'"),
        (JobsAsked(until="0001-01-01T00:00+14:00"), "until", "outside of what UTC can express"),
        (JobsAsked(since="2026-01-31T09:00", until="2026-01-31T09:00Z"), "until", "not later than the beginning"),
        (JobsAsked(text="x" * 201), "text", "it has 201 characters"),
        (JobsAsked(before="-1"), "before", "not '-1'"),
        (JobsAsked(before="9" * 19), "before", "the number that a list told"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_field(asked: JobsAsked, field: str, said: str) -> None:
    problems = wanted(asked).problems

    assert list(problems) == [field]
    assert said in problems[field]


def test_times_of_any_zone_go_into_the_form_as_utc() -> None:
    chosen = wanted(JobsAsked(since="2026-01-31T10:00:00+01:00", until="2026-01-31T09:00:07.5Z")).chosen

    assert (in_form(chosen.since), in_form(chosen.until), in_form(None)) == (
        "2026-01-31T09:00",
        "2026-01-31T09:00:07",
        "",
    )
