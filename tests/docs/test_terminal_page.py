import re
import shlex
from pathlib import Path

import pytest

import windlass
from tests.docs.pages import text_of
from windlass.cli.program import program

SHOWN = re.findall(r"^\$ windlass (.*)$", text_of("howto/steer-from-the-terminal.md"), re.MULTILINE)
EXAMPLE = "0199a3c2-7f4e"


def test_every_command_of_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDLASS_URL", "sqlite:///jobs.db")
    with windlass.connect_sync("sqlite:///jobs.db", max_attempts=1) as client:
        done = client.enqueue("email", kind="newsletter", id=f"{EXAMPLE}-7000-8000-000000000000")
        claim = client.claim("email")
        assert claim is not None
        client.ack(claim)
        client.enqueue("email", kind="newsletter", tenant="acme")

    assert SHOWN
    for shown in SHOWN:
        with pytest.raises(SystemExit) as ended:
            program(shlex.split(shown), prog_name="windlass")

        assert ended.value.code == 0, f"{shown}: {capsys.readouterr().err}"
    assert done.id.startswith(EXAMPLE)
