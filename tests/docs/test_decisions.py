import ast
import re
import tomllib
from functools import cache
from typing import Final

import pytest

from tests.docs.pages import DOCS, text_of

ROOT: Final = DOCS.parent
PAGES: Final = sorted(
    str(page.relative_to(DOCS)) for room in ("decisions", "explanation") for page in (DOCS / room).glob("*.md")
)
MARKED: Final = re.compile(r"`([^`\n]+)`")
FILE: Final = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|sql|lua|html)")
CLASS: Final = re.compile(r"(?:[A-Z][a-z]+){2,}")
ELSEWHERE: Final = {"ProcessPoolExecutor", "ThreadPoolExecutor", "SameSite", "HttpOnly"}
"""Names of the standard library and of HTTP."""


def test_the_drawing_of_imports_has_the_layers_of_the_contract() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    [direction] = [each for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "direction"]
    drawing = text_of("decisions/0001-layout-and-direction-of-imports.md").split("```")[1]

    drawn = [re.findall(r"\w+", line.split("  ")[0]) for line in drawing.splitlines()[1:] if line[:1].isalpha()]

    assert drawn == [re.findall(r"\w+", layer) for layer in direction["layers"]]


@cache
def files() -> frozenset[str]:
    """Return the paths of our files, each with all ends by which a page may name it."""
    paths = [path.relative_to(ROOT) for folder in ("src", "tests", "proofs") for path in (ROOT / folder).rglob("*.*")]
    return frozenset("/".join(path.parts[at:]) for path in paths for at in range(len(path.parts)))


@cache
def names() -> frozenset[str]:
    """Return all names and texts of our code."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.ClassDef(name=name) | ast.alias(name=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                    found.add(name)
                case ast.Constant(value=str() as name):
                    found.add(name)
                case _:
                    pass
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_class_that_a_page_names_is_there(page: str) -> None:
    marked = MARKED.findall(text_of(page))

    gone = [text for text in marked if FILE.fullmatch(text) and text not in files()]
    gone += [text for text in marked if CLASS.fullmatch(text) and text not in names() | ELSEWHERE]
    assert gone == []
