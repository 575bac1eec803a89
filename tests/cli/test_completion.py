import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import windlass
from tests.cli.conftest import URL, Run
from tests.cli.given_jobs import fill
from windlass.cli.completion import WHERE
from windlass.cli.program import COMMANDS, COMPLETING, program


def completed(*words: str) -> list[str]:
    """What a shell is told for the last of `words`."""
    *before, incomplete = words
    asked = ShellComplete(program, {}, "windlass", COMPLETING)
    return [item.value for item in asked.get_completions(before, incomplete)]


@pytest.mark.parametrize("shell", WHERE)
def test_a_script_is_printed_and_where_it_goes(run: Run, shell: str) -> None:
    done = run("completion", shell)

    assert done.code == 0
    assert COMPLETING in done.out
    assert shell in done.err
    assert run("completion", shell, "--json").document["script"] in done.out
    assert run("completion", "tcsh").code == 2


@pytest.mark.parametrize(
    "words,found",
    [
        (["jo"], {"jobs"}),
        ([""], set(COMMANDS)),
        (["jobs", "re"], {"retry", "reschedule"}),
        (["jobs", "--sta"], {"--state"}),
        (["jobs", "--state", "de"], {"dead"}),
        (["jobs", "retry", "--state", "de"], {"dead"}),
        (["nonsense", "x"], set[str]()),
        (["nonsense", "--x"], set[str]()),
    ],
)
def test_commands_options_and_states_are_completed(words: list[str], found: set[str]) -> None:
    assert set(completed(*words)) == found


def test_queues_are_completed_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(URL)
    monkeypatch.setenv("WINDLASS_URL", URL)

    assert completed("jobs", "--queue", "ma") == ["mail"]
    assert completed("queues", "pause", "") == ["mail", "reports"]
    assert completed("jobs", "--kind", "") == []


@pytest.mark.parametrize("url", ["sqlite:///nothing.db", "nonsense", "redis://192.0.2.1:6379", ""])
def test_a_store_that_does_not_answer_is_waited_for_briefly_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setenv("WINDLASS_URL", url)
    began = time.monotonic()

    assert completed("jobs", "--queue", "ma") == []

    assert time.monotonic() - began < 5
    assert capfd.readouterr() == ("", "")
    assert not Path("nothing.db").exists()


def test_the_program_answers_a_shell_and_ends(tmp_path: Path) -> None:
    with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db") as client:
        client.enqueue("mail")
    asked = {
        **os.environ,
        COMPLETING: "bash_complete",
        "COMP_WORDS": "windlass jobs --queue m",
        "COMP_CWORD": "3",
        "WINDLASS_URL": f"sqlite:///{tmp_path}/jobs.db",
    }

    done = subprocess.run([sys.executable, "-m", "windlass"], env=asked, capture_output=True, timeout=60, check=True)

    assert (done.stdout, done.stderr) == (b"plain,mail\n", b"")
