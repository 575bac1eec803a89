import logging
from datetime import timedelta
from pathlib import Path

import pytest

from windlass.config import SETTINGS, Shown, find_project, resolve
from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.retry import NoRetry
from windlass.core.settings import UNSET, QueueSettings

OPEN_URL = "postgres://user:hunter2@host/db"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "pyproject.toml"
    path.write_text(
        """
        [tool.windlass]
        lease = "20s"
        concurrency = 2
        max_attempts = 2
        [tool.windlass.queue.email]
        max_attempts = 9
        [tool.windlass.queue.slow]
        lease = "1h"
        """,
        encoding="utf-8",
    )
    return path


def test_when_nobody_says_anything_the_defaults_hold() -> None:
    found = resolve({}, environ={}, project=None)

    assert {setting.name: found.value(setting.name) for setting in SETTINGS} == {
        setting.name: setting.default for setting in SETTINGS
    }
    assert {found.source(setting.name) for setting in SETTINGS} == {"default"}


def test_flags_go_over_environment_over_file_over_code_over_defaults(project: Path) -> None:
    found = resolve(
        dict.fromkeys(("lease", "concurrency", "max_attempts", "priority"), 1),
        {"lease": "40s"},
        environ={"WINDLASS_LEASE": "30s", "WINDLASS_CONCURRENCY": "3"},
        project=project,
    )

    names = ("lease", "concurrency", "max_attempts", "priority", "processes")
    assert [(found.value(name), found.source(name)) for name in names] == [
        (timedelta(seconds=40), "flag"),
        (3, "WINDLASS_CONCURRENCY"),
        (2, "pyproject.toml"),
        (1, "code"),
        (1, "default"),
    ]


def test_the_url_of_the_environment_goes_over_that_of_the_code() -> None:
    found = resolve({"url": "memory://"}, environ={"WINDLASS_URL": "sqlite:///jobs.db"}, project=None)

    assert (found.value("url"), found.source("url")) == ("sqlite:///jobs.db", "WINDLASS_URL")


def test_what_code_or_a_flag_left_out_is_not_given() -> None:
    code = {"lease": UNSET, "url": None, "name": None, "threads": None}

    found = resolve(code, {"concurrency": None}, environ={}, project=None)

    assert found.given() == {}


def test_none_is_a_value_where_it_means_something() -> None:
    found = resolve({"keep_dead": None}, {"job_timeout": "none"}, environ={}, project=None)

    assert found.given() == {"keep_dead": None, "job_timeout": None}


def test_a_store_of_the_programs_own_stands_for_a_url() -> None:
    class Own:
        def claim(self) -> None: ...

    store = Own()

    found = resolve({"url": store}, environ={}, project=None)

    assert found.value("url") is store
    assert next(iter(found)) == Shown("url", "Own", "code")


def test_what_was_given_is_given_on_for_the_asked_names_alone() -> None:
    found = resolve({"lease": 5, "priority": 7}, environ={"WINDLASS_THREADS": "4"}, project=None)

    assert found.given(["lease", "threads", "processes"]) == {"lease": timedelta(seconds=5), "threads": 4}


def test_the_file_goes_over_the_code_for_a_single_queue_setting_by_setting(project: Path) -> None:
    code = {"email": QueueSettings(max_attempts=1, lease=5, retry=NoRetry()), "other": QueueSettings(priority=7)}

    found = resolve({}, environ={"WINDLASS_MAX_ATTEMPTS": "3"}, project=project, queues=code)

    assert found.queue_settings == {
        "email": QueueSettings(max_attempts=9, lease=timedelta(seconds=5), retry=NoRetry()),
        "other": QueueSettings(priority=7),
        "slow": QueueSettings(lease=timedelta(hours=1)),
    }


def test_every_setting_is_shown_with_its_source_and_the_ones_of_queues_too(project: Path) -> None:
    code = {"email": QueueSettings(priority=7)}

    shown = list(resolve({}, environ={"WINDLASS_QUEUES": "a=2,b"}, project=project, queues=code))

    assert [line.name for line in shown[: len(SETTINGS)]] == [setting.name for setting in SETTINGS]
    assert Shown("lease", "20s", "pyproject.toml") in shown
    assert Shown("queues", "a=2,b=1", "WINDLASS_QUEUES") in shown
    assert Shown("url", "none", "default") in shown
    assert shown[len(SETTINGS) :] == [
        Shown("queue.email.max_attempts", "9", "pyproject.toml"),
        Shown("queue.email.priority", "7", "code"),
        Shown("queue.slow.lease", "1h", "pyproject.toml"),
    ]


def test_a_password_is_a_value_but_never_shown() -> None:
    found = resolve({}, environ={"WINDLASS_URL": OPEN_URL}, project=None)

    assert found.value("url") == OPEN_URL
    assert "hunter2" not in repr(found)
    assert "hunter2" not in repr(list(found))


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"max_attempts": "many"}, "^--max-attempts: max_attempts must be an integer, not 'many'"),
        ({"max_attempts": 0}, "^--max-attempts: max_attempts must be from 1"),
        ({"processes": "1001"}, "^--processes: processes must be from 1 to 1,000, not 1,001"),
        ({"leese": 1}, "there is no setting 'leese': did you mean 'lease'"),
    ],
)
def test_a_bad_flag_is_refused_by_its_name(flags: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        resolve({}, flags, environ={}, project=None)


@pytest.mark.parametrize("code", [{"lease": -1}, {"lease": "30s"}, {"leese": 1}, {"max_attempts": None}])
def test_a_bad_value_in_code_is_refused(code: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=r"lease|max_attempts"):
        resolve(code, environ={}, project=None)


def test_a_bad_value_in_code_is_refused_also_when_another_source_would_win() -> None:
    with pytest.raises(InvalidValue, match="lease"):
        resolve({"lease": -1}, environ={"WINDLASS_LEASE": "5"}, project=None)


def test_bad_settings_of_a_single_queue_in_code_are_refused() -> None:
    with pytest.raises(InvalidValue, match="priority"):
        resolve({}, environ={}, project=None, queues={"email": QueueSettings(priority=-1)})
    with pytest.raises(InvalidName):
        resolve({}, environ={}, project=None, queues={"e mail": QueueSettings()})


def test_an_unknown_name_is_asked_for_in_vain() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'lease'"):
        resolve({}, environ={}, project=None).value("leese")


def test_a_variable_that_only_looks_like_a_setting_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "windlass"):
        resolve({}, environ={"WINDLASS_LEEASE": "1"}, project=None)
        found = resolve({}, environ={"WINDLASS_LEEASE": "1"}, project=None)

    assert caplog.messages == ["WINDLASS_LEEASE is no setting: did you mean WINDLASS_LEASE?"]
    assert found.unknown == tuple(caplog.messages)


def test_the_file_that_was_read_is_told(project: Path) -> None:
    assert resolve({}, environ={}, project=find_project(project.parent)).project == project
    assert resolve({}, environ={}, project=None).project is None
