from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import click
import pytest

from windlass.api.looks import Chosen
from windlass.cli.job_filter import filter_options
from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.filters import FILTER_FIELDS, JobFilter
from windlass.core.states import State
from windlass.http.dashboard.job_bulk import WORDS
from windlass.http.dashboard.job_query import JobsAsked

PARENT = "0199a3c2-7f4e-7000-8000-00000000000a"


@pytest.mark.parametrize("state", ["dead", State.DEAD])
def test_a_state_may_be_given_by_its_name(state: str) -> None:
    assert JobFilter(state=state).state is State.DEAD


@pytest.mark.parametrize("state", ["failed", "DEAD", "", 1])
def test_a_state_that_does_not_exist_is_refused_with_those_that_do(state: object) -> None:
    wrong: dict[str, Any] = {"state": state}

    with pytest.raises(InvalidValue, match="scheduled, pending, running, succeeded, dead, cancelled"):
        JobFilter(**wrong)


@pytest.mark.parametrize("field", ["queue", "kind", "tenant", "schedule_id", "unique_key"])
@pytest.mark.parametrize("name", ["", "a b", "a' or 1=1"])
def test_a_name_that_cannot_exist_is_refused(field: str, name: str) -> None:
    given: dict[str, Any] = {field: name}

    with pytest.raises(InvalidName):
        JobFilter(**given)


@pytest.mark.parametrize("field", ["since", "until"])
def test_a_time_is_brought_to_utc_and_a_naive_one_refused(field: str) -> None:
    aware: dict[str, Any] = {field: datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))}
    naive: dict[str, Any] = {field: datetime(2026, 1, 1)}  # noqa: DTZ001 - the naive one is the case

    assert getattr(JobFilter(**aware), field).tzinfo is UTC
    with pytest.raises(InvalidValue, match=f"{field} has no time zone"):
        JobFilter(**naive)


def test_the_id_of_a_parent_is_brought_to_one_form_and_what_is_none_refused() -> None:
    assert JobFilter(parent_id=PARENT.replace("-", "").upper()).parent_id == PARENT
    for wrong in ("", "0199", "x" * 36):
        with pytest.raises(InvalidValue, match="a job id is a UUID"):
            JobFilter(parent_id=wrong)


@pytest.mark.parametrize("field", ["error_type", "payload_text"])
@pytest.mark.parametrize(
    "text, said",
    [("", "is empty"), (5, "must be a string, not int"), ("\ud800", "UTF-8"), ("é" * 1001, "has 1,001 characters")],
)
def test_a_text_that_cannot_be_looked_for_is_refused(field: str, text: object, said: str) -> None:
    given: dict[str, Any] = {field: text}

    with pytest.raises(InvalidValue, match=f"{field} .*{said}"):
        JobFilter(**given)


def test_text_and_error_are_taken_as_they_are() -> None:
    chosen = JobFilter(text="50% off_'", error="")

    assert (chosen.text, chosen.error) == ("50% off_'", "")


@pytest.mark.parametrize("field", ["text", "error"])
@pytest.mark.parametrize("text, said", [(5, "must be a string, not int"), ("\ud800", "UTF-8")])
def test_what_no_store_can_be_asked_with_is_refused(field: str, text: object, said: str) -> None:
    given: dict[str, Any] = {field: text}

    with pytest.raises(InvalidValue, match=f"{field} .*{said}"):
        JobFilter(**given)


def test_a_filter_says_by_field_what_was_given() -> None:
    given = JobFilter(queue="mail", parent_id=PARENT).by_field()

    assert {name: value for name, value in given.items() if value is not None} == {"queue": "mail", "parent_id": PARENT}


def test_the_command_line_and_the_api_choose_by_every_field_of_a_filter() -> None:
    @filter_options
    def command() -> None:
        """Do nothing."""

    options = {each.name for each in click.command(command).params}

    assert options == set(FILTER_FIELDS), "cli/job_filter.py has an option for each field"
    assert set(Chosen.__struct_fields__) == set(FILTER_FIELDS), "Chosen in api/looks.py has each field"


def test_the_dashboard_words_each_field_that_its_list_chooses_by() -> None:
    # the text is looked for apart, and a change of all jobs that are listed is made in one state
    offered = set(JobsAsked.__struct_fields__) - {"before", "text", "state"}

    assert offered <= set(FILTER_FIELDS)
    assert set(WORDS) == offered, "job_bulk.py has words for each field of JobsAsked"
