import re
import shlex
from pathlib import Path

import pytest

import windlass
from tests.docs.pages import text_of
from windlass.cli.program import program
from windlass.cli.top.wanted import read_wanted
from windlass.client import why

PAGE = text_of("howto/find-out-why-a-job-has-not-run.md")
TOP = text_of("howto/watch-in-the-terminal.md")
SHOWN = re.findall(r"^\$ windlass (.*)$", PAGE + TOP, re.MULTILINE)
EXAMPLE = "0199a3c2-7f4e"


def test_the_page_has_every_reason_and_no_other() -> None:
    folder = Path(why.__file__).parent
    made = {name for file in folder.glob("*.py") for name in re.findall(r'Reason\(\s*"(\w+)"', file.read_text())}
    told = {
        name
        for row in re.findall(r"^\| (`[a-z`, _]+`) \|", PAGE, re.MULTILINE)
        for name in row.strip("`").split("`, `")
    }

    assert len(made) > 30
    assert told == made


def test_every_command_of_the_pages_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDLASS_URL", "sqlite:///jobs.db")
    with windlass.connect_sync("sqlite:///jobs.db") as client:
        client.enqueue("email", kind="newsletter", id=f"{EXAMPLE}-7000-8000-000000000000")
        client.pause("email")

    for shown in SHOWN:
        with pytest.raises(SystemExit) as ended:
            program(shlex.split(shown), prog_name="windlass")
        assert ended.value.code == 0, shown

        out = capsys.readouterr().out
        if shown == f"why {EXAMPLE}":
            assert f"```text\n{out}```" in PAGE


def test_every_word_of_the_filter_is_one() -> None:
    [words] = re.findall(r"`(queue:\S+ [^`]+)`", TOP)

    chosen = read_wanted(words)

    assert chosen is not None
    assert None not in (chosen.queue, chosen.state, chosen.kind, chosen.tenant, chosen.schedule_id, chosen.error)
