import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.markers import MARKED

ROOT = Path(__file__).resolve().parent.parent
PLACES = (".ci", "benchmarks", "docs", "examples", "packaging", "proofs", "src", "tests")
HOME_OF_SOMEBODY = re.compile(r"(?<![\w.])/(?:home|Users|root)/\w|[A-Z]:\\Users\\")
CODE = re.compile(r"\b[A-Z]{1,2}\d{1,3}\b")
NO_CODES = {"S3"}
"""What looks like the code of a sentence in some document, and is a name that engineers know."""
RELATIVE_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")

# Runs a statement in a fresh interpreter and tells what it opened and whose packages it loaded. Python itself opens
# modules to import them; whatever else is opened, or connected to, or started, was our doing.
WITNESS = """
import json, sys

touched = []

def hook(event, args):
    if event == "open" and not str(args[0]).endswith((".py", ".pyc")):
        touched.append(f"{event} {args[0]}")
    elif event.startswith(("socket.", "sqlite3.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system")):
        touched.append(event)

before = {name.partition(".")[0] for name in sys.modules}
sys.addaudithook(hook)
exec(sys.argv[1])
loaded = {name.partition(".")[0] for name in sys.modules} - before - sys.stdlib_module_names - {"windlass"}
print(json.dumps({"touched": touched, "packages": sorted(loaded)}))
"""


# Python binds a module to its package when it is imported, also over a function of the same name.
NAMESAKES = """
import importlib, importlib.util, types, windlass

for name in windlass.__all__:
    if importlib.util.find_spec(f"windlass.{name}"):
        importlib.import_module(f"windlass.{name}")
        if isinstance(getattr(windlass, name), types.ModuleType):
            print(name)
"""


def files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for place in PLACES:
        yield from (path for path in (ROOT / place).rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def text_of(path: Path) -> str:
    """The text of a file, or nothing for one that holds no text."""
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode(errors="replace")


def run_in_a_fresh_interpreter(program: str, *arguments: str) -> str:
    command = [sys.executable, "-I", "-B", "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


@pytest.mark.parametrize("statement", ["import windlass", "from windlass import *"])
def test_an_import_opens_nothing_and_loads_at_most_three_packages(statement: str) -> None:
    seen = json.loads(run_in_a_fresh_interpreter(WITNESS, statement))

    assert seen["touched"] == []
    assert len(seen["packages"]) <= 3, seen["packages"]


def test_the_package_needs_at_most_three_others() -> None:
    assert len(project()["dependencies"]) <= 3


@pytest.mark.parametrize("name", windlass.__all__)
def test_a_public_name_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(windlass, name) is not None
    assert name in dir(windlass)


def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    assert run_in_a_fresh_interpreter(NAMESAKES).split() == []


def test_public_names_are_listed_once() -> None:
    assert len(windlass.__all__) == len(set(windlass.__all__))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    name = "no_such_name"

    with pytest.raises(AttributeError, match=name):
        getattr(windlass, name)


def test_no_file_names_somebodys_home() -> None:
    found = [str(path.relative_to(ROOT)) for path in files() if HOME_OF_SOMEBODY.search(text_of(path))]

    assert found == []


def test_the_source_asks_no_type_checker_to_look_away() -> None:
    sources = (ROOT / "src").rglob("*.py")

    found = [str(path.relative_to(ROOT)) for path in sources if re.search(r"(type|pyright): *ignore", text_of(path))]

    assert found == []


def test_every_link_between_pages_leads_to_a_file() -> None:
    pages = [path for path in files() if path.suffix == ".md"]

    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in RELATIVE_LINK.findall(text_of(page))
        if not (page.parent / link).exists()
    ]

    assert broken == []


def test_every_page_of_the_docs_is_listed_by_the_index_of_its_room() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"]

    unlisted = [
        str(page.relative_to(ROOT)) for page in pages if f"]({page.name})" not in text_of(page.parent / "README.md")
    ]

    assert unlisted == []


def test_no_statement_and_no_script_has_a_name_that_other_tools_have_for_rescue_and_prune() -> None:
    glossary = text_of(ROOT / "docs" / "glossary.md")
    # vacuum is a thing of Postgres itself
    theirs = {each for word in ("rescue", "prune") for each in _words_not_for(word, glossary)} - {"vacuum"}
    assert "sweep" in theirs

    files = [path for suffix in ("sql", "lua") for path in (ROOT / "src").rglob(f"*.{suffix}")]

    assert [path.name for path in files if theirs & set(path.stem.split("_"))] == []


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_names_the_two_commands_of_a_fresh_clone(command: str) -> None:
    assert command in text_of(ROOT / "README.md")


def _words_not_for(word: str, glossary: str) -> list[str]:
    """What the last column of the glossary has beside a word."""
    [row] = [line for line in glossary.splitlines() if line.startswith(f"| **{word}** |")]
    return row.rstrip(" |").rpartition("|")[2].strip().split(", ")


def test_the_table_of_places_has_a_row_for_every_room_of_the_package() -> None:
    _, _, table = text_of(ROOT / "CONTRIBUTING.md").partition("## Where things live")
    told = re.findall(r"^\| `src/windlass/(\w+)/`", table, re.MULTILINE)

    rooms = [path.parent.name for path in (ROOT / "src" / "windlass").glob("*/__init__.py")]
    assert sorted(told) == sorted(rooms)


def test_the_package_is_described_as_in_the_first_sentence_of_the_readme() -> None:
    first = " ".join(text_of(ROOT / "README.md").split("\n\n")[1].split())

    assert first == f"Windlass is {project()['description'][:1].lower()}{project()['description'][1:]}"
    assert {"sqlite", "postgres", "redis", "slatedb", "cron"} <= set(project()["keywords"])


def test_make_test_leaves_out_every_marker_but_that_of_the_conformance_suite() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {marker.partition(":")[0] for marker in settings["markers"]}

    [left_out] = re.findall(r"^QUICK := not \((.*)\)$", text_of(ROOT / "Makefile"), re.MULTILINE)

    assert set(left_out.split(" or ")) == markers - {"engine"}
    assert set(MARKED) <= markers


@pytest.mark.parametrize("modules", sorted({each for all_of_one in MARKED.values() for each in all_of_one}))
def test_every_module_that_has_a_marker_is_there(modules: str) -> None:
    folder = ROOT / "src" if modules.startswith("windlass.") else ROOT

    assert list(folder.glob(f"{modules.replace('.', '/')}.py")), "tests/markers.py names what is not there"


def test_no_docstring_says_the_code_of_a_sentence_in_place_of_the_sentence() -> None:
    trees = [(path, ast.parse(text_of(path))) for path in files() if path.suffix == ".py"]

    coded = [
        f"{path.relative_to(ROOT)}:{node.body[0].lineno}: {code}"
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for code in CODE.findall(ast.get_docstring(node) or "")
        if code not in NO_CODES
    ]

    assert coded == []
