import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.children import eventually
from tests.parent.given import Running, enqueue, jobs
from windlass.cli.program import program
from windlass.cli.worker import FLAGS, SECTIONS
from windlass.config.settings import SETTINGS


def helped() -> str:
    return CliRunner().invoke(program, ["worker", "--help"], prog_name="windlass").output


def test_every_setting_has_a_flag() -> None:
    assert {setting.name for setting in FLAGS} == {setting.name for setting in SETTINGS} - {"app"}
    assert all(f"  {setting.flag} " in helped() for setting in FLAGS)


def test_the_help_says_what_a_flag_takes() -> None:
    text = " ".join(helped().split())

    assert "--concurrency N Jobs at once in each process" in text
    assert "--shutdown-timeout DURATION" in text
    assert "--keep-dead DURATION|none" in text
    assert "--order weighted|strict|priority" in text
    assert "--services on|off" in text


def test_the_help_shows_each_default_under_the_heading_of_its_option() -> None:
    text = helped()

    assert [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
        *(f"{heading}:" for heading in SECTIONS),
        "Options:",
    ]
    assert "Jobs at once in each process; 0 runs the services alone. [default: 20]" in " ".join(text.split())
    assert "How long an attempt may take unless its job says otherwise. [default: 5m]" in " ".join(text.split())


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["tasks:app", "--concurrency", "many"], "--concurrency: concurrency must be an integer"),
        (["tasks:app", "--processes", "0"], "--processes: processes must be from 1"),
        (["tasks:app", "--queues", "a,a"], "--queues"),
        (["tasks:app", "--order", "random"], "--order"),
        (["tasks:app", "--log-format", "xml"], "--log-format"),
        (["tasks:app", "--log-level", "loud"], "--log-level"),
        (["tasks:app", "--concurency", "1"], "--concurency"),
        (["tasks:app", "other:app"], "unexpected extra argument"),
        (["-A", "tasks"], "name the app without a flag, or by --app: windlass worker tasks"),
        (["--queues", "mail", "-A"], "name the app without a flag, or by --app: windlass worker tasks:app"),
        (["tasks:app", "--app", "tasks:app"], "the app is named twice: leave out the argument, or --app"),
        ([], "no app is named"),
    ],
)
def test_wrong_usage_is_said_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDLASS_APP", raising=False)

    done = CliRunner().invoke(program, ["worker", *arguments], prog_name="windlass")

    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


def test_the_parent_loads_nothing_that_serves_jobs() -> None:
    """What it does not have cannot break in it, and it stays small."""
    program = "import sys, windlass.cli.worker; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    heavy = {"asyncio", "rich", "sqlite3", "windlass.app", "windlass.client", "windlass.stores", "windlass.connect"}
    assert heavy & set(loaded) == set()


def test_the_start_is_told_in_a_line_a_person_is_glad_of(tmp_path: Path) -> None:
    options = ("--processes", "2", "--concurrency", "3", "--queues", "email=2,default")
    with Running(tmp_path, *options) as running:
        running.says("ready: ")
        running.signal(signal.SIGTERM)
        assert running.ends() == 0

    [line] = [line for line in running.log().splitlines() if "works tasks:app" in line]
    assert "on sqlite:///jobs.db" in line
    assert "2 processes, 3 jobs at once each" in line
    assert "queues email, default" in line
    assert "schedules none" in line


def test_a_password_in_the_url_is_not_told(tmp_path: Path) -> None:
    url = "sqlite:///jobs.db?password=canary"
    with Running(tmp_path, environment={"WINDLASS_URL": url}) as running:
        assert running.ends() in (2, 5)

    assert "canary" not in running.log()


def test_flags_go_over_the_environment_over_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.windlass]\napp = "tasks:app"\nconcurrency = 2\nprocesses = 2\nshutdown_timeout = "7s"\n'
    )
    environment = {"WINDLASS_CONCURRENCY": "3", "WINDLASS_SHUTDOWN_TIMEOUT": "8s"}
    with Running(tmp_path, "--shutdown-timeout", "9s", app="", environment=environment) as running:
        running.says("ready: ")
        running.signal(signal.SIGTERM)
        assert running.ends() == 0

    assert "2 processes, 3 jobs at once each" in running.log()
    assert "jobs that run have 9 s" in running.log()


def test_a_worker_of_services_alone_runs_no_job(tmp_path: Path) -> None:
    """Idle."""
    enqueue(tmp_path, "say", {"text": "hello"})
    with Running(tmp_path, "--concurrency", "0") as running:
        running.says("ready: ")
        running.signal(signal.SIGTERM)
        assert running.ends() == 0

    assert jobs(tmp_path) == [("pending", 0, 0)]


@pytest.mark.slow
def test_two_processes_share_the_jobs(tmp_path: Path) -> None:
    enqueue(tmp_path, "wait_for_file", {"name": "go"}, times=4)
    with Running(tmp_path, "--processes", "2", "--concurrency", "2") as running:
        running.noted("began-go", 4)
        (tmp_path / "go").touch()

        assert eventually(lambda: jobs(tmp_path) == [("succeeded", 1, 1)] * 4)
        began = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.ends() == 0
    assert time.monotonic() - began < 2
    assert len({pid for note, pid in running.notes() if note == "began-go"}) == 2
