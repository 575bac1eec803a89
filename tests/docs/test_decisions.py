import re
import tomllib

from tests.docs.pages import DOCS, text_of


def test_the_drawing_of_imports_has_the_layers_of_the_contract() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    [direction] = [each for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "direction"]
    drawing = text_of("decisions/0001-layout-and-direction-of-imports.md").split("```")[1]

    drawn = [re.findall(r"\w+", line.split("  ")[0]) for line in drawing.splitlines()[1:] if line[:1].isalpha()]

    assert drawn == [re.findall(r"\w+", layer) for layer in direction["layers"]]
