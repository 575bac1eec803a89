"""A campaign that finds nothing must be able to: its report tells broken and void from green."""

import os
from pathlib import Path

import pytest

from proofs import command, index
from proofs.ledger import Ledger, read
from proofs.report import Report, Verdict


def test_a_run_without_its_fault_is_void() -> None:
    report = Report("part", "promise")
    report.never("lost", [])
    report.needs("50 kills", given=False)

    assert report.verdict is Verdict.VOID
    assert "not seen: 50 kills" in report.text()


def test_a_violation_is_broken_and_shows_the_first_examples() -> None:
    report = Report("part", "promise")
    report.never("lost", [f"job {number}" for number in range(9)])
    report.needs("50 kills", given=False)

    assert report.verdict is Verdict.BROKEN
    assert "job 4" in report.markdown()
    assert "job 5" not in report.markdown()


def test_a_run_with_its_evidence_and_no_violation_holds() -> None:
    report = Report("part", "promise")
    report.figure("kills", 50_000)
    report.never("lost", [])
    report.needs("50 kills", given=True)

    assert report.verdict is Verdict.HOLDS
    assert "| kills | 50,000 |" in report.markdown()


def test_a_report_says_what_has_to_be_known_to_judge_it() -> None:
    report = Report("part", "promise", remark="Half the size, for a reason.", code="src 1a2b3c4")

    assert "\nHalf the size, for a reason.\n" in report.markdown()
    assert report.markdown().endswith(", src 1a2b3c4.\n")


def test_the_index_has_what_every_report_says() -> None:
    listed = (index.REPORTS / index.INDEX).read_text()

    assert listed == index.index(), "write it anew: python -m proofs.index"
    assert listed.count("\n| [") == len(list(index.REPORTS.glob("*.md"))) - 1


def test_a_report_is_listed_when_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("part", "nothing | is lost", code="src 1a2b3c4")
    report.needs("50 kills", given=False)
    monkeypatch.setattr(index, "REPORTS", tmp_path)
    monkeypatch.setitem(command.PARTS, "processes", lambda _folder, _scale: report)

    code = command.main(["processes", "--report", str(tmp_path / "part.md")])

    row = "| [part](part.md) | nothing \\| is lost | VOID: it proves nothing | src 1a2b3c4 |\n"
    assert (code, (tmp_path / index.INDEX).read_text().splitlines(keepends=True)[-1]) == (2, row)


def test_a_report_elsewhere_has_no_list_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.PARTS, "processes", lambda _folder, _scale: Report("part", "promise"))

    assert command.main(["processes", "--report", str(tmp_path / "part.md")]) == 0

    assert [path.name for path in tmp_path.iterdir()] == ["part.md"]


def test_a_torn_line_of_a_ledger_is_read_as_such_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    write(path, "killed", "first")
    os.truncate(path, path.stat().st_size - 10)
    write(path, "next", "second")

    assert [(entry.event, entry.job) for entry in read(path)] == [("torn", ""), ("ok", "second")]


def write(path: Path, process: str, job: str) -> None:
    ledger = Ledger(path, process)
    ledger.write("ok", job)
    ledger.close()
