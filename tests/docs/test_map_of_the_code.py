"""The map of the code, compared with what runs."""

import json
import re
import subprocess
import sys
from typing import Final

import pytest

from tests.docs.pages import DOCS, section

PAGE: Final = "explanation/map-of-the-code.md"
ROOT: Final = DOCS.parent
PATHS: Final = {"enqueue": "The way of an enqueue", "work": "The way of a job", "page": "The way of a page"}
BESIDE: Final = {
    "client/watch.py", "stores/sqlite/room.py", "stores/sqlite/wake.py", "stores/sqlite/checkpoint.py",
    "engine/service.py", "engine/services.py", "engine/rescuer.py", "engine/heart.py", "client/upkeep.py",
    "stores/sqlite/damaged.py",
}  # fmt: skip
"""What may run at the same time in the background: notifications of other processes, checkpoints, and services."""
LEAF: Final = re.compile(r"(core|kit)/.*|[^/]+\.py|.*\.html")
"""Rules and records that every way uses, and templates."""


def _on_the_page(title: str) -> list[str]:
    return re.findall(r"`((?:\w+/)+\w+\.py)`", section(PAGE, title))


@pytest.mark.parametrize("scenario", PATHS)
def test_the_map_has_the_files_of_each_way(scenario: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.code_paths", scenario], cwd=ROOT, capture_output=True, text=True, check=True
    )
    traced = [file for file in json.loads(done.stdout.splitlines()[-1]) if not LEAF.fullmatch(file)]
    shown = _on_the_page(PATHS[scenario])

    assert not (missing := [file for file in traced if file not in shown and file not in BESIDE]), missing
    assert not (stale := [file for file in shown if file not in traced and file not in BESIDE]), stale


def test_every_file_on_the_map_is_there() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", text)
    missing = [name for name in named if not ((ROOT / "src/windlass" / name).exists() or (ROOT / name).exists())]

    assert named
    assert missing == []
    assert len(re.sub(r"[|`#-]+", " ", text).split()) < 1_300
