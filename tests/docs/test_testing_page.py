import inspect

import windlass.testing
from tests.docs.pages import rows
from windlass.testing import BlockingTestApp, TestApp, plugin

PAGE = "reference/testing.md"


def test_the_page_has_every_public_name() -> None:
    assert sorted(name for name, _ in rows(PAGE, "name")) == sorted(windlass.testing.__all__)


def test_the_page_has_every_member_of_a_test_app() -> None:
    members = {name for name, _ in inspect.getmembers(TestApp) if not name.startswith("_")}
    attributes = {name for owner in TestApp.__mro__ for name in inspect.get_annotations(owner) if name[0] != "_"}

    assert {name for name, _ in rows(PAGE, "member")} == members | attributes


def test_the_blocking_form_has_no_other_members() -> None:
    blocking = {name for name, _ in inspect.getmembers(BlockingTestApp) if not name.startswith("_")}

    assert blocking - {"run"} <= {name for name, _ in rows(PAGE, "member")}


def test_the_page_has_every_fixture() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("windlass_")}

    assert {name for name, kind, _ in rows(PAGE, "name | kind") if kind == "fixture"} == fixtures
