"""Every part that the suite lists has behaviours, and says what they are about."""

from importlib import import_module

import pytest

from windlass.testing import conformance


@pytest.mark.parametrize("part", conformance.PARTS)
def test_every_part_shows_something(part: str) -> None:
    module = import_module(f"windlass.testing.conformance.{part}")

    assert [name for name in vars(module) if name.startswith("test_")]
    assert module.__doc__
