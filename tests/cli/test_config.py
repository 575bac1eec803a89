from pathlib import Path

import pytest

from tests.cli.conftest import Run
from windlass.config import SETTINGS


def test_every_setting_is_listed_with_where_it_came_from(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pyproject.toml").write_text("[tool.windlass]\nlease = '45s'\n[tool.windlass.queue.email]\nmax_attempts = 9\n")
    monkeypatch.setenv("WINDLASS_CONCURRENCY", "8")

    done = run("config", "--url", "redis://me:hush@host/0")

    lines = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()[1:]}
    assert list(lines) == [*(setting.name for setting in SETTINGS), "queue.email.max_attempts"]
    assert lines["url"] == ["redis://me:***@host/0", "flag"]
    assert lines["lease"] == ["45s", "pyproject.toml"]
    assert lines["concurrency"] == ["8", "WINDLASS_CONCURRENCY"]
    assert lines["priority"] == ["1000", "default"]
    assert lines["queue.email.max_attempts"] == ["9", "pyproject.toml"]
    assert str(Path("pyproject.toml").resolve()) in done.err
    assert "hush" not in done.out + done.err


@pytest.mark.usefixtures("app_file")
def test_an_app_adds_what_its_code_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_APP", "tasks:app")

    told = run("config", "--json").document["settings"]

    assert told["url"] == {"value": "sqlite:///jobs.db", "source": "code"}
    assert told["app"] == {"value": "tasks:app", "source": "WINDLASS_APP"}
    assert not Path("jobs.db").exists()


@pytest.mark.usefixtures("app_file")
def test_a_flag_goes_over_the_code_of_the_app(run: Run) -> None:
    told = run("config", "--json", "--app", "tasks", "--url", "sqlite:///other.db").document["settings"]

    assert told["url"] == {"value": "sqlite:///other.db", "source": "flag"}


def test_a_variable_that_only_looks_like_a_setting_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_LEES", "3")

    told = run("config", "--json").document

    assert told["unknown"] == ["WINDLASS_LEES is no setting: did you mean WINDLASS_LEASE?"]
    assert told["project"] is None


@pytest.mark.parametrize("bad", ["[tool.windlass]\nlease = 'soon'", "[tool.windlass]\nlees = 3", "[tool.windlass"])
def test_a_file_that_cannot_be_read_is_named(run: Run, bad: str) -> None:
    Path("pyproject.toml").write_text(bad)

    done = run("config")

    assert (done.code, done.out) == (2, "")
    assert "pyproject.toml" in done.err
