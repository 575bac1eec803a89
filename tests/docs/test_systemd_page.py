import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.docs.outside_settings import check_command, check_environment, check_grace
from tests.docs.pages import named, rows

PAGE = "howto/run-under-systemd.md"
FILES = named(PAGE, "ini")
UNITS = sorted(name for name in FILES if name.endswith(".service"))
ENVIRONMENTS = sorted(name for name in FILES if name.endswith(".env"))
VERIFIER = shutil.which("systemd-analyze")


def pairs(name: str) -> list[tuple[str, str]]:
    """The lines of a file that set something; a key may stand there twice."""
    lines = [line for line in FILES[name].splitlines() if line and line[0] not in "#["]
    return [(key, value) for key, _, value in (line.partition("=") for line in lines)]


def value(unit: str, key: str) -> str:
    [found] = [each for name, each in pairs(unit) if name == key]
    return found


def test_the_page_shows_units_and_their_environments() -> None:
    assert len(UNITS) == 2
    assert len(ENVIRONMENTS) == 2


@pytest.mark.skipif(VERIFIER is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_knows_every_line_of_a_unit(unit: str, tmp_path: Path) -> None:
    program, *_ = value(unit, "ExecStart").split()
    file = tmp_path / Path(unit).name
    file.write_text(FILES[unit].replace(program, sys.executable))

    done = subprocess.run(
        [str(VERIFIER), "verify", "--man=no", str(file)], capture_output=True, text=True, check=False, timeout=60
    )

    # other units of the machine may have faults of their own
    assert [line for line in done.stderr.splitlines() if "windlass" in line] == []


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_runs_a_worker_and_gives_it_time_to_stop(unit: str) -> None:
    check_command(value(unit, "ExecStart").replace("%i", "reports").split())
    check_grace(timedelta(seconds=int(value(unit, "TimeoutStopSec"))))
    assert value(unit, "KillMode") == "mixed"


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_reads_the_environment_that_the_page_shows(unit: str) -> None:
    read = {each.removeprefix("-").replace("%i", "reports") for key, each in pairs(unit) if key == "EnvironmentFile"}

    assert read <= set(ENVIRONMENTS)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_variable_is_a_setting(environment: str) -> None:
    check_environment(dict(pairs(environment)))


def test_the_database_lies_in_the_folder_that_the_unit_may_write_to() -> None:
    [unit] = [unit for unit in UNITS if "@" not in unit]
    url = dict(pairs("/etc/shop/windlass.env"))["WINDLASS_URL"]

    assert Path(url.removeprefix("sqlite:///")).parent == Path("/var/lib") / value(unit, "StateDirectory")


def test_the_page_gives_reasons_for_lines_that_are_there() -> None:
    [unit] = [unit for unit in UNITS if "@" not in unit]

    assert {line for line, _ in rows(PAGE, "line")} <= {f"{key}={each}" for key, each in pairs(unit)}
