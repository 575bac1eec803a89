import inspect
import re
from dataclasses import fields
from typing import Any

import pytest

from tests.docs.pages import rows, section, text_of
from windlass import App, BlockingHandle, Call, Context, Handle, Handler, Server, ServerConfig
from windlass.app.handler import BoundOptions
from windlass.app.job_decorator import JobOptions
from windlass.config.settings import find
from windlass.core.job import CancelEvent
from windlass.core.signals import Signal
from windlass.engine import attempt_stopper, claim_plan, renewals, unstarted_claims
from windlass.engine.config import OF_APP
from windlass.engine.context import JobLog
from windlass.engine.executors import processes
from windlass.engine.health import Health
from windlass.stores.memory.store import FEATURES as MEMORY
from windlass.stores.slatedb.store import MOST_UNSETTLED

APP, CONTEXT, SERVER = "reference/app.md", "reference/context.md", "reference/server.md"
HEADING = re.compile(r"^### `(\w+)\((.*)\)`$", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
MARK: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
OWNERS: list[tuple[str, str, type[Any]]] = [
    (APP, "App", App),
    (APP, "Handler", Handler),
    (APP, "Call", Call),
    (APP, "Handle", Handle),
    (CONTEXT, "Context", Context),
    (SERVER, "Server", Server),
]


def parameters(function: object) -> str:
    written: list[str] = []
    for each in list(inspect.signature(function).parameters.values())[1:]:  # type: ignore[arg-type]
        if each.kind is each.KEYWORD_ONLY and not any(name.startswith("*") for name in written):
            written.append("*")
        written.append(MARK.get(each.kind, "") + each.name)
    return ", ".join(written)


def methods(owner: type[Any]) -> dict[str, str]:
    members = inspect.getmembers(owner, callable)
    return {name: parameters(method) for name, method in members if not name.startswith("_")}


def attributes(owner: type[Any]) -> set[str]:
    named = {name for name, value in inspect.getmembers(owner) if not name.startswith("_") and not callable(value)}
    return named | {name for name in inspect.get_annotations(owner) if not name.startswith("_")}


@pytest.mark.parametrize("page,title,owner", OWNERS, ids=[title for _, title, _ in OWNERS])
def test_the_page_has_every_method_with_its_parameters(page: str, title: str, owner: type[Any]) -> None:
    told = dict(HEADING.findall(section(page, title)))
    if owner is App:
        assert told.pop("job") == ", ".join(["*", *(each.name for each in fields(JobOptions))])

    assert told == methods(owner)


@pytest.mark.parametrize("page,title,owner", OWNERS, ids=[title for _, title, _ in OWNERS])
def test_the_page_speaks_of_every_attribute(page: str, title: str, owner: type[Any]) -> None:
    told = {name for name, _ in HEADING.findall(section(page, title))} | set(NAME.findall(section(page, title)))

    assert attributes(owner) - told == set()


def test_the_page_has_every_argument_of_an_app_in_order() -> None:
    told = [name for cell, _ in rows(APP, "argument") for name in NAME.findall(cell) or [cell]]

    assert told == list(inspect.signature(App).parameters)


def test_the_page_has_every_option_of_a_job() -> None:
    told = [name for cell, _ in rows(APP, "option") for name in NAME.findall(cell) or [cell]]

    assert sorted(told) == sorted(each.name for each in fields(JobOptions))


def test_a_blocking_handle_has_the_names_of_the_page() -> None:
    assert methods(BlockingHandle) == dict(HEADING.findall(section(APP, "Handle")))


def test_options_give_what_the_page_says() -> None:
    assert all(f"`{name}`" in section(APP, "Handler") for name in methods(BoundOptions))


def test_the_page_has_every_level_of_the_log() -> None:
    [text] = [text for name, text in rows(CONTEXT, "attribute") if name == "log"]

    assert set(NAME.findall(text)) == set(methods(JobLog))


def test_the_page_has_all_of_the_event() -> None:
    told = dict(re.findall(r"^\| `(\w+)(\(.*?\))?` \|", section(CONTEXT, "Cancelled"), re.MULTILINE))

    assert told.pop("reason") == ""
    assert {name: call.strip("()") for name, call in told.items()} == methods(CancelEvent)


def test_the_page_has_every_signal_with_its_parameters() -> None:
    told = [cell for cell, *_ in rows(CONTEXT, "signal")]

    assert told == [f"{each.__name__}({_given_to(each)})" for each in Signal.__subclasses__()]


def _given_to(signal: type[Signal]) -> str:
    return parameters(signal.__init__) if "__init__" in vars(signal) else ""


def test_the_page_has_every_setting_of_a_server_in_order_with_its_default() -> None:
    shown = {
        each.name: "the app's" if each.name in OF_APP else find(each.name).show(getattr(ServerConfig(), each.name))
        for each in fields(ServerConfig)
    }

    assert [(name, default) for name, default, _ in rows(SERVER, "setting")] == list(shown.items())


def test_the_page_says_what_health_has() -> None:
    assert f"`Health({', '.join(Health._fields)})`" in text_of(SERVER)


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert dict(rows(SERVER, "what")) == {
        "look-ahead: what was finished in the last": f"{claim_plan.WINDOW * 1000:.0f} ms",
        "look-ahead, at most": f"{claim_plan.MOST:,} jobs",
        "a claim that was not begun is given back after": f"{unstarted_claims.AHEAD_FOR:.0f} s",
        "unsettled ends before no more is claimed": f"{MEMORY.most_unsettled:,}; on SlateDB {MOST_UNSETTLED:,}",
        "between asking a handler to stop and using force": f"{attempt_stopper.PATIENCE:.0f} s",
        "a lease is renewed each": f"1/{renewals.PARTS} of it",
        "an idle child process ends after": f"{processes.IDLE_FOR:.0f} s",
    }


def test_every_page_of_the_reference_is_listed() -> None:
    listed = text_of("reference/README.md")

    assert all(f"({page.rpartition('/')[2]})" in listed for page in (APP, CONTEXT, SERVER))
