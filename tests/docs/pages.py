"""What a page shows that `make examples` cannot run in place: whole files, and what a terminal answers."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FILE = re.compile(r"^```py\n(# (\S+\.py)\n.*?)^```$", re.MULTILINE | re.DOTALL)
TERMINAL = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_files(page: str, folder: Path) -> None:
    """Write every file that `page` shows into `folder`."""
    for text, name in FILE.findall((DOCS / page).read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")


def answers(page: str, command: str) -> list[str]:
    """Return what `page` says that `command` answers, each time that it is shown."""
    shown = "".join(TERMINAL.findall((DOCS / page).read_text(encoding="utf-8")))
    parts = re.split(r"^\$ (.*)\n", shown, flags=re.MULTILINE)[1:]
    return [answer for asked, answer in zip(parts[::2], parts[1::2], strict=True) if asked == command]
