from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL, Run


@pytest.fixture
def a_store() -> None:
    windlass.connect_sync(URL).open()


@pytest.mark.usefixtures("a_store")
def test_a_healthy_store_ends_with_zero(run: Run) -> None:
    done = run("doctor", "--url", URL)

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "all is well"
    assert all(line.startswith(("ok", " ", "all")) for line in done.out.splitlines())


def test_a_warning_ends_with_zero_and_with_one_when_it_is_strict(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue("email")

    done = run("doctor", "--url", URL)

    assert done.code == 0
    assert "no live server, and 1 job waiting" in done.out
    assert "-> start one: windlass worker module:app" in done.out
    assert done.out.splitlines()[-1] == "1 warning"
    assert run("doctor", "--strict", "--url", URL).code == 1


def test_an_error_ends_with_one(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue("email")
        client.claim("email", lease=0)

    done = run("doctor", "--json", "--url", URL)

    levels = {finding["name"]: finding["level"] for finding in done.document["findings"]}
    assert (done.code, done.document["level"], levels["leases"]) == (1, "error", "error")


@pytest.mark.usefixtures("a_store", "app_file")
def test_an_app_is_loaded_and_told_of(run: Run) -> None:
    done = run("doctor", "--app", "tasks:app")

    assert done.code == 0
    assert "'windlass': 3 kinds, 2 queues, 0 schedules" in done.out


@pytest.mark.usefixtures("a_store")
def test_a_variable_that_is_no_setting_is_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_LEES", "3")

    assert "did you mean WINDLASS_LEASE?" in run("doctor", "--url", URL).out


def test_a_store_that_is_not_there_is_one_finding_and_is_not_made(run: Run) -> None:
    done = run("doctor", "--url", URL, "--json")

    [finding] = done.document["findings"]
    assert (done.code, done.err, finding["name"], finding["level"]) == (5, "", "store", "error")
    assert finding["message"] == "there is no store at sqlite:///jobs.db yet"
    assert "look whether the URL is right" in finding["advice"]
    assert not Path("jobs.db").exists()


@pytest.mark.parametrize(
    "url", ["postgres://nobody:secret@127.0.0.1:1/a?timeout=1", "redis://:secret@127.0.0.1:1/0?timeout=1"]
)
def test_a_store_that_does_not_answer_is_one_finding(run: Run, url: str) -> None:
    done = run("doctor", "--url", url)

    assert (done.code, done.err) == (5, "")
    assert done.out.startswith("ERROR     store")
    assert "see that it runs and can be reached" in done.out
    assert "secret" not in done.out


def test_a_file_that_is_no_store_is_told_and_left_alone(run: Run) -> None:
    Path("jobs.db").write_text("this is no database at all, only text" * 100)

    done = run("doctor", "--url", URL)

    assert (done.code, done.err) == (5, "")
    assert "restore it from a backup" in done.out
    assert Path("jobs.db").read_text().startswith("this is no database")
