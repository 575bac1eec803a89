import inspect
import re
from dataclasses import fields
from typing import get_args

from tests.docs.pages import rows, section, text_of
from windlass import App, Schedule
from windlass.blocking.layer import Blocking
from windlass.blocking.schedules import BlockingSchedules
from windlass.client.schedules import Schedules
from windlass.core.schedule import DUE_AT, CatchUp, Overlap

PAGE = "reference/schedules.md"
HEADING = re.compile(r"^### `(\w+)\((.*)\)`$", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
TOLD = dict(HEADING.findall(section(PAGE, "Schedules of a client")))


def names(first: str) -> list[str]:
    """The names in the first column of a table."""
    return [name for cell, *_ in rows(PAGE, first) for name in NAME.findall(cell) or [cell]]


def parameters(method: object) -> list[str]:
    return list(inspect.signature(method).parameters)[1:]  # type: ignore[arg-type]


def test_the_page_has_every_method_with_its_parameters() -> None:
    methods = {name: method for name, method in inspect.getmembers(Schedules, callable) if not name.startswith("_")}

    assert {name: told.replace("*, ", "") for name, told in TOLD.items()} == {
        name: ", ".join(parameters(method)) for name, method in methods.items()
    }


def test_the_blocking_form_has_every_method_of_the_page() -> None:
    assert {name for name, value in vars(BlockingSchedules).items() if isinstance(value, Blocking)} == set(TOLD)


def test_the_page_has_every_argument_of_a_put_and_of_a_declaration() -> None:
    assert names("argument") == parameters(Schedules.put)
    assert names("option") == parameters(App.every)


def test_the_page_has_every_field_of_a_schedule_in_order() -> None:
    assert names("field") == [each.name for each in fields(Schedule)]


def test_the_page_has_every_choice_with_the_default_marked() -> None:
    for what, choices in (("catch_up", CatchUp), ("overlap", Overlap)):
        told = {choice.strip('"'): text for choice, text in rows(PAGE, f"`{what}`")}

        assert tuple(told) == get_args(choices)
        [default] = [choice for choice, text in told.items() if text.endswith("the default")]
        assert default == inspect.signature(Schedules.put).parameters[what].default


def test_the_page_names_the_header_of_the_due_time() -> None:
    assert f"`{DUE_AT}`" in text_of(PAGE)
