import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from docs.generate import commands
from tests.docs.pages import rows, section, text_of, write_files
from windlass.exit_codes import MEANINGS

PAGE = "reference/commands.md"
SHOWN = re.findall(r"^\$ (windlass .*)$", text_of(PAGE), re.MULTILINE)


@pytest.mark.parametrize("path,command", list(commands()), ids=[path for path, _ in commands()])
def test_the_page_has_every_option_of_every_command_and_no_other(path: str, command: click.Command) -> None:
    told = set(re.findall(r"^\| `(--[a-z-]+)", section(PAGE, path), re.MULTILINE))

    assert told == {each.opts[0] for each in command.params if isinstance(each, click.Option)}


def test_the_page_has_no_command_that_is_not_there() -> None:
    told = re.findall(r"^## (windlass .*)$", text_of(PAGE), re.MULTILINE)

    assert told == [path for path, _ in commands()]


def test_the_page_explains_every_exit_code() -> None:
    assert rows(PAGE, "code") == [[str(code.value), meaning] for code, meaning in MEANINGS.items()]


def test_every_command_that_the_page_shows_works(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    env = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}

    assert SHOWN
    for shown in SHOWN:
        words = [sys.executable, "-m", *shlex.split(shown)]
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**env, "WINDLASS_URL": "sqlite:///jobs.db"},
        )
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr
