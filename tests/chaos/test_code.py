"""A report names the code that ran, whatever commits lead to it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from proofs.code import code_in

NAMED = ["-c", "user.name=A", "-c", "user.email=a@example.org"]

with_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@with_git
def test_the_same_sources_have_the_same_name_in_every_commit(tmp_path: Path) -> None:
    begin(tmp_path)
    first = code_in(tmp_path)

    write(tmp_path / "README.md")
    commit(tmp_path)
    second = code_in(tmp_path)
    write(tmp_path / "src" / "more.py")
    commit(tmp_path)

    assert first.startswith("src ")
    assert second == first
    assert code_in(tmp_path) != first


@with_git
def test_reports_are_no_change_and_all_else_is(tmp_path: Path) -> None:
    begin(tmp_path)
    clean = code_in(tmp_path)

    write(tmp_path / "proofs" / "reports" / "part.md")
    write(tmp_path / "benchmarks" / "reports" / "part.md")
    reported = code_in(tmp_path)
    write(tmp_path / "proofs" / "part.py")

    assert reported == clean
    assert code_in(tmp_path) == f"{clean} with changes"


@with_git
def test_an_exported_tree_does_not_take_the_name_of_what_is_around_it(tmp_path: Path) -> None:
    begin(tmp_path)
    write(tmp_path / "exported" / "src" / "code.py")
    commit(tmp_path)

    assert code_in(tmp_path / "exported") == ""


def test_code_that_nobody_keeps_has_no_name(tmp_path: Path) -> None:
    assert code_in(tmp_path) == ""


def begin(root: Path) -> None:
    subprocess.run(["git", "-C", root, "init"], check=True, capture_output=True)
    write(root / "src" / "code.py")
    commit(root)


def commit(root: Path) -> None:
    for words in (["add", "--all"], [*NAMED, "commit", "--message", "a change"]):
        subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("something\n")
