"""The list of the reports, read from them: `python -m proofs.index` writes it anew, as each report does."""

import re
from pathlib import Path
from typing import Final, NamedTuple

REPORTS: Final = Path(__file__).parent / "reports"
INDEX: Final = "README.md"
_CODE: Final = re.compile(r", ((?:src|commit) [^,]+)\.$")
_HEAD: Final = """\
# Reports

The last run of each [part](../README.md): what it holds, whether it did, and the code that ran, where the report names
it. Written by `python -m proofs` with each report; nobody writes here by hand.

| part | promise | verdict | code |
|---|---|---|---|
"""


class Told(NamedTuple):
    """What a report says of its run."""

    part: str
    promise: str
    verdict: str
    code: str


def index(folder: Path = REPORTS) -> str:
    """Return the page that lists the reports in `folder`."""
    rows = [_row(path, _told(path.read_text())) for path in sorted(folder.glob("*.md")) if path.name != INDEX]
    return _HEAD + "".join(rows)


def write_index(folder: Path = REPORTS) -> None:
    """Write the page beside the reports."""
    (folder / INDEX).write_text(index(folder))


def _told(report: str) -> Told:
    lines = [line for line in report.splitlines() if line]
    # as `Report.markdown` writes them: the promise below the title, at the end the verdict and where it ran
    code = _CODE.search(lines[-1])
    return Told(lines[0].removeprefix("# "), lines[1], lines[-2].strip("*"), code[1] if code is not None else "-")


def _row(path: Path, told: Told) -> str:
    promise = told.promise.replace("|", "\\|")
    return f"| [{told.part}]({path.name}) | {promise} | {told.verdict} | {told.code} |\n"


if __name__ == "__main__":
    write_index()
