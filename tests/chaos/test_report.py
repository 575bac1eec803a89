"""A campaign that finds nothing must be able to, and what it finds can be looked at: broken and void are not green."""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from proofs import command, index
from proofs.ledger import Ledger, read
from proofs.remains import Remains
from proofs.report import Report, Verdict
from tests.redis.private import PrivateRedis

SERVERS: list[PrivateRedis] = []


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

    code = command.main(["processes", "--report", str(tmp_path / "part.md"), "--folder", str(tmp_path)])

    row = "| [part](part.md) | nothing \\| is lost | VOID: it proves nothing | src 1a2b3c4 |\n"
    assert (code, (tmp_path / index.INDEX).read_text().splitlines(keepends=True)[-1]) == (2, row)


def test_a_report_elsewhere_has_no_list_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.PARTS, "processes", lambda _folder, _scale: Report("part", "promise"))

    assert command.main(["processes", "--report", str(tmp_path / "part.md")]) == 0

    assert [path.name for path in tmp_path.iterdir()] == ["part.md"]


def test_a_promise_that_held_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.PARTS, "processes", lambda folder, _scale: a_run(folder, lost=[]))

    assert command.main(["processes", "--folder", str(tmp_path)]) == 0

    assert [*tmp_path.iterdir()] == []
    assert not SERVERS[-1].folder.exists()


def test_a_promise_that_was_broken_leaves_the_ledger_and_what_its_servers_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(command.PARTS, "processes", lambda folder, _scale: a_run(folder, lost=["job"]))

    assert command.main(["processes", "--folder", str(tmp_path)]) == 1

    assert_all_is_there(tmp_path, capsys.readouterr().err)


def test_a_campaign_that_fails_leaves_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(folder: Path, _scale: int) -> Report:
        a_run(folder, lost=[])
        raise RuntimeError

    monkeypatch.setitem(command.PARTS, "processes", fails)

    with pytest.raises(RuntimeError):
        command.main(["processes", "--folder", str(tmp_path)])

    assert_all_is_there(tmp_path, capsys.readouterr().err)


def test_a_server_on_another_disk_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_disk(_self: Path, _target: Path) -> Path:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "rename", other_disk)
    left = Remains(tmp_path)

    with left.of_servers():
        a_run(tmp_path, lost=["job"])

    assert (SERVERS[-1].folder / "log").exists()
    assert str(left) == f"{tmp_path}, {SERVERS[-1].folder}"
    shutil.rmtree(SERVERS[-1].folder)


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


def a_run(folder: Path, *, lost: Sequence[str]) -> Report:
    """Write a ledger beside a server that ends, and report what was lost."""
    write(folder / "ledger", "owner 1", "job")
    with PrivateRedis() as server:
        SERVERS.append(server)
    report = Report("part", "promise")
    report.never("lost", lost)
    return report


def assert_all_is_there(where: Path, said: str) -> None:
    [folder] = where.iterdir()
    assert said == f"processes: what there is to look at is left in {folder}\n"
    assert [entry.job for entry in read(folder / "ledger")] == ["job"]
    assert (folder / SERVERS[-1].folder.name / "log").exists()
    assert not SERVERS[-1].folder.exists()
