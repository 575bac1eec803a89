from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from windlass.config.sources import find_project, read_environment, read_project
from windlass.core.errors import InvalidValue


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_environment_gives_settings_by_their_variables() -> None:
    found = read_environment({"WINDLASS_LEASE": " 45s ", "WINDLASS_SERVICES": "off", "HOME": "/", "LEASE": "1"})

    assert found.values == {"lease": timedelta(seconds=45), "services": False}
    assert found.unknown == ()


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read_environment({"WINDLASS_LEASE": "", "WINDLASS_LEESE": " "}).values == {}


def test_a_bad_variable_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidValue, match=r"^WINDLASS_LEASE: lease must be a number of seconds, .* not 'soon'$"):
        read_environment({"WINDLASS_LEASE": "soon"})


def test_a_bad_url_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidValue, match=r"^WINDLASS_URL: ") as refused:
        read_environment({"WINDLASS_URL": "user:hunter2@host"})

    assert "hunter2" not in str(refused.value)


def test_an_unknown_variable_is_told_and_hurts_nobody() -> None:
    found = read_environment({"WINDLASS_LEESE": "1", "WINDLASS_QQQQ": "1", "WINDLASS_EAGER": "1"})

    assert found.values == {}
    assert found.unknown == (
        "WINDLASS_EAGER is no setting: it is given in code alone, App(..., eager=True)",
        "WINDLASS_LEESE is no setting: did you mean WINDLASS_LEASE?",
        "WINDLASS_QQQQ is no setting: it is left alone",
    )


@pytest.mark.parametrize("name", ["WINDLASS_TOKEN", "WINDLASS_EXAMPLES", "WINDLASS_FAILPOINTS"])
def test_a_variable_of_ours_that_is_no_setting_is_known(name: str) -> None:
    assert read_environment({name: "1"}).unknown == ()


def test_a_name_that_only_begins_like_ours_is_not_looked_at() -> None:
    assert read_environment({"WINDLASSX": "1", "windlass_lease": "1"}).unknown == ()


def test_the_nearest_project_with_a_table_of_ours_is_found(tmp_path: Path) -> None:
    ours = write(tmp_path, "[tool.windlass]\n")
    write(tmp_path / "a", "[project]\nname = 'other'\n")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)

    assert find_project(deep) == ours
    assert find_project(tmp_path) == ours


def test_a_project_nearer_by_wins(tmp_path: Path) -> None:
    write(tmp_path, "[tool.windlass]\n")
    nearer = write(tmp_path / "a", "[tool.windlass.queue.email]\nlease = 5\n")

    assert find_project(tmp_path / "a") == nearer


def test_without_a_project_nothing_is_found(tmp_path: Path) -> None:
    write(tmp_path, "[tool.other]\n")

    assert find_project(tmp_path) is None


@pytest.mark.parametrize("content", [b"[tool.windlass\n", b"name = '\xff'\n"])
def test_a_project_that_cannot_be_read_is_refused_by_its_path(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content)

    with pytest.raises(InvalidValue, match=r"pyproject\.toml cannot be read: ") as refused:
        find_project(tmp_path)

    assert str(path) in str(refused.value)


def test_a_project_gives_settings_in_the_types_of_toml_or_as_text(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [tool.windlass]
        url = "sqlite:///jobs.db"
        lease = 45
        job_timeout = "none"
        shutdown_timeout = 0.5
        keep_dead = "30d"
        concurrency = 5
        services = false
        queues = ["email", "default"]
        """,
    )

    assert read_project(path).values == {
        "url": "sqlite:///jobs.db",
        "lease": timedelta(seconds=45),
        "job_timeout": None,
        "shutdown_timeout": timedelta(milliseconds=500),
        "keep_dead": timedelta(days=30),
        "concurrency": 5,
        "services": False,
        "queues": {"email": 1, "default": 1},
    }


@pytest.mark.parametrize("written", ['"email=3,default"', "{email = 3, default = 1}"])
def test_a_project_gives_queues_with_weights(tmp_path: Path, written: str) -> None:
    path = write(tmp_path, f"[tool.windlass]\nqueues = {written}\n")

    assert read_project(path).values == {"queues": {"email": 3, "default": 1}}


def test_a_project_gives_settings_of_single_queues(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [tool.windlass]
        max_attempts = 2
        [tool.windlass.queue.email]
        max_attempts = 5
        [tool.windlass.queue."a.b"]
        keep_dead = "none"
        """,
    )

    found = read_project(path)

    assert found.values == {"max_attempts": 2}
    assert found.queues == {"email": {"max_attempts": 5}, "a.b": {"keep_dead": None}}


@pytest.mark.parametrize(
    "text, message",
    [
        ("[tool]\nwindlass = 5", "pyproject.toml [tool.windlass]: it must be a table, not int"),
        (
            "[tool.windlass]\nleese = 5",
            "pyproject.toml [tool.windlass]: there is no setting 'leese': did you mean 'lease'?",
        ),
        ("[tool.windlass]\neager = true", "[tool.windlass]: there is no setting 'eager': it is given in code alone"),
        ("[tool.windlass]\nlease = -1", "pyproject.toml [tool.windlass] lease: lease must not be negative"),
        ("[tool.windlass]\nlease = true", "pyproject.toml [tool.windlass] lease: lease must be a"),
        ("[tool.windlass]\nlease = 00:00:30", "pyproject.toml [tool.windlass] lease: lease must be a"),
        ("[tool.windlass]\nlease = inf", "pyproject.toml [tool.windlass] lease: lease must be"),
        ("[tool.windlass]\nconcurrency = 1.5", "[tool.windlass] concurrency: concurrency must be an integer"),
        ("[tool.windlass]\nservices = 1", "[tool.windlass] services: services must be true or false, not 1"),
        ("[tool.windlass]\nqueues = [1]", "[tool.windlass] queues: queue 1 is int, not a string"),
        ("[tool.windlass]\nqueue = 5", "[tool.windlass.queue]: it must be a table"),
        ("[tool.windlass.queue]\nemail = 5", "[tool.windlass.queue.email]: it must be a table"),
        ("[tool.windlass.queue.email]\nlease = 'x'", "[tool.windlass.queue.email] lease: lease must be a number"),
        ("[tool.windlass.queue.email]\nleese = 1", "[tool.windlass.queue.email]: there is no setting 'leese'"),
        (
            "[tool.windlass.queue.email]\nthreads = 1",
            "[tool.windlass.queue.email]: there is no setting 'threads': a single",
        ),
        (
            "[tool.windlass.queue.'e mail']\nlease = 1",
            "[tool.windlass.queue.'e mail']: queue 'e mail' has the character",
        ),
        (
            "[tool.windlass.queue.a.b]\nlease = 1",
            "[tool.windlass.queue.a]: 'b' is a table: write a queue's name with a dot in quotes, \"a.b\"",
        ),
    ],
)
def test_a_project_with_a_mistake_is_refused_by_the_place_of_it(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(InvalidValue) as refused:
        read_project(path)

    assert message in str(refused.value)


def test_a_project_without_a_table_of_ours_says_nothing(tmp_path: Path) -> None:
    found = read_project(write(tmp_path, "tool = 5\n"))

    assert (found.values, found.queues) == ({}, {})


def test_what_was_read_does_not_show_its_values_in_passing() -> None:
    found: Any = read_environment({"WINDLASS_URL": "postgres://user:hunter2@host/db"})

    assert "hunter2" not in repr(found)
