import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, answers, text_of, write_files

ROOMS = ("tutorial", "howto", "reference", "explanation", "decisions")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def anchor(heading: str) -> str:
    """The part of a link that leads to a heading, as GitHub makes it."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_program_for_more_than_one_core_answers_as_it_says(tmp_path: Path) -> None:
    page = "howto/use-more-than-one-core.md"
    write_files(page, tmp_path)

    done = subprocess.run(
        [sys.executable, "primes.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert [done.stdout] == answers(page, "python primes.py"), done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_every_page_of_a_room_is_listed(room: str) -> None:
    pages = {page.name for page in (DOCS / room).glob("*.md")} - {"README.md"}
    listed = {target for target, _ in LINK.findall(text_of(f"{room}/README.md"))}

    assert pages - listed == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    text = FENCED.sub("", text_of(page))

    for target, part in LINK.findall(text):
        path = (DOCS / page).parent / target if target else DOCS / page
        assert path.exists(), target
        if part and path.suffix == ".md":
            found = {anchor(heading) for heading in HEADING.findall(FENCED.sub("", path.read_text(encoding="utf-8")))}
            assert part in found, f"{target}{part}"
