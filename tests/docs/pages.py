"""What tests read off a page: its tables, the files that it shows, and what a terminal answers."""

import itertools
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FILE = re.compile(r"^```py\n(# (\S+\.py)\n.*?)^```$", re.MULTILINE | re.DOTALL)
ALONE = re.compile(r"^`([^`]+)`$")
TERMINAL = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    """Return the text of a page."""
    return (DOCS / page).read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    """Return what stands on a page below the heading `## title`, up to the next of its kind."""
    _, found, below = text_of(page).partition(f"\n## {title}\n")
    assert found, f"{page} has no section {title}"
    return below.partition("\n## ")[0]


def rows(page: str, first: str) -> list[list[str]]:
    """Return the rows of the table of `page` whose first column is called `first`; a name alone in its cell is bare."""
    _, _, table = text_of(page).partition(f"| {first} |")
    lines = itertools.takewhile(lambda line: line.startswith("|"), table.splitlines()[2:])
    return [[ALONE.sub(r"\1", cell.strip()) for cell in line.strip("|").split("|")] for line in lines]


def write_files(page: str, folder: Path) -> None:
    """Write every file that `page` shows into `folder`."""
    for text, name in FILE.findall(text_of(page)):
        (folder / name).write_text(text, encoding="utf-8")


def named(page: str, language: str) -> dict[str, str]:
    """Return the text of every block of `language` whose first line is a comment with a name, by that name."""
    blocks = re.findall(rf"^```{language}\n# (\S+)\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    return dict(blocks)


def answers(page: str, command: str) -> list[str]:
    """Return what `page` says that `command` answers, each time that it is shown."""
    shown = "".join(TERMINAL.findall(text_of(page)))
    parts = re.split(r"^\$ (.*)\n", shown, flags=re.MULTILINE)[1:]
    return [answer for asked, answer in zip(parts[::2], parts[1::2], strict=True) if asked == command]
