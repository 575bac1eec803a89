import re
from pathlib import Path

import pytest

from docs.generate import diagram, error_table, pages
from windlass.core import errors
from windlass.core.states import MOVES, State


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_with_a_generated_part_is_current(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == pages()[page], "run python docs/generate.py"


def test_the_diagram_has_every_move_and_no_other() -> None:
    drawn = {
        (by, old, new)
        for old, new, label in re.findall(r"^    (\S+) --> (\w+): (.+)$", diagram(), re.MULTILINE)
        for by in label.split(", ")
    }

    assert drawn == {(move.by, move.old or "[*]", move.new) for move in MOVES}
    assert all(f"{state}:" in diagram() for state in State)


def test_the_table_has_every_error_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", error_table(), re.MULTILINE)
    known = [
        name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.WindlassError)
    ]

    assert sorted(rows) == sorted(known)
