"""The suite shows every numbered behaviour that is asked of a store."""

import re
from importlib import import_module

import pytest

from windlass.testing import conformance

ASKED = set(range(1, 97))


def test_every_numbered_behaviour_of_a_store_is_shown() -> None:
    tests = [value for name, value in vars(conformance).items() if name.startswith("test_")]

    shown = {int(number) for test in tests for number in re.findall(r"\bC(\d+)\b", test.__doc__ or "")}

    assert ASKED - shown == set()
    assert shown - ASKED == set()


@pytest.mark.parametrize("part", conformance.PARTS)
def test_every_part_shows_something(part: str) -> None:
    module = import_module(f"windlass.testing.conformance.{part}")

    assert [name for name in vars(module) if name.startswith("test_")]
    assert module.__doc__
