from pathlib import Path

from tests.docs.pages import DOCS
from tests.docs.walk import NAME, Walk, steps

README = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_go_as_the_page_says(tmp_path: Path) -> None:
    shown = [step for step in steps(README) if step.what == "console" or NAME.match(step.text)]

    assert [step.what for step in shown] == ["python", "console", "console"]
    with Walk(tmp_path) as walk:
        for step in shown:
            walk.follow(step)
