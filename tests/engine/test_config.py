import copy
import inspect
import pickle
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from windlass.config import SETTINGS, resolve
from windlass.config.settings import ORDERS, find
from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.settings import UNSET
from windlass.engine.config import OF_APP, ServerConfig, ServerSettings

NAMES = [each.name for each in fields(ServerConfig)]
DURATIONS = [name for name in NAMES if isinstance(find(name).default, timedelta)]
INTERVALS = ["poll_interval", "job_timeout", "rescue_interval", "heartbeat_interval", "dead_after", "prune_interval"]


def config(**given: object) -> ServerConfig:
    wrong: Any = given
    return ServerConfig(**wrong)


def test_every_setting_of_a_server_is_in_the_table_with_the_same_default() -> None:
    own = [name for name in NAMES if name not in OF_APP]

    assert {name: getattr(ServerConfig(), name) for name in own} == {name: find(name).default for name in own}
    assert {getattr(ServerConfig(), name) for name in OF_APP} == {UNSET}


def test_every_setting_of_the_table_is_one_of_a_server_of_its_app_or_of_the_command_line() -> None:
    of_app = {"url", "name", "max_attempts", "priority", "max_payload"}
    of_commands = {"app", "log_format", "log_level", "metrics"}

    assert {setting.name for setting in SETTINGS} == of_app | of_commands | set(NAMES)


def test_the_keywords_are_the_fields() -> None:
    assert list(inspect.signature(ServerConfig).parameters) == NAMES


def test_a_server_takes_the_same_keywords_of_the_same_types() -> None:
    given = {name: each.annotation for name, each in inspect.signature(ServerConfig).parameters.items()}

    assert ServerSettings.__annotations__ == given


@pytest.mark.parametrize("name", DURATIONS)
def test_a_duration_is_a_timedelta_or_a_number_of_seconds_and_kept_as_the_former(name: str) -> None:
    apart = {} if name in ("heartbeat_interval", "dead_after") else {"heartbeat_interval": 1}

    assert getattr(config(**{name: 15.5}, **apart), name) == timedelta(seconds=15.5)
    assert getattr(config(**{name: timedelta(seconds=20)}, **apart), name) == timedelta(seconds=20)


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize("value", [-1, "30s", True, float("nan")])
def test_what_is_no_duration_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidValue, match=f"^{name} must"):
        config(**{name: value})


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_of_zero_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match=f"{name} must be more than zero"):
        config(**{name: 0})


def test_a_shutdown_without_grace_and_a_lease_of_zero_are_allowed() -> None:
    found = ServerConfig(shutdown_timeout=0, lease=0)

    assert (found.shutdown_timeout, found.lease) == (timedelta(0), timedelta(0))


def test_none_is_no_timeout_and_keeps_for_ever() -> None:
    found = ServerConfig(job_timeout=None, keep_dead=None, keep_max=None)

    assert (found.job_timeout, found.keep_dead, found.keep_max) == (None, None, None)


@pytest.mark.parametrize("heartbeat, dead", [(10, 10), (10, 5), (60, 60)])
def test_a_server_is_not_shown_as_gone_between_two_beats(heartbeat: int, dead: int) -> None:
    with pytest.raises(InvalidValue, match=r"dead_after, .*, must be longer than heartbeat_interval"):
        ServerConfig(heartbeat_interval=heartbeat, dead_after=dead)


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": -1},
        {"concurrency": None},
        {"concurrency": UNSET},
        {"processes": 0},
        {"threads": 0},
        {"threads": True},
        {"order": "random"},
        {"schedules": "on"},
        {"services": 1},
        {"stop_on_error": None},
        {"queues": "email"},
        {"queues": []},
        {"queues": {"email": 0}},
        {"queues": ["email", "email"]},
        {"lease": None},
        {"keep_max": -1},
    ],
)
def test_a_setting_that_cannot_mean_anything_is_refused_by_its_name(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        config(**wrong)


def test_a_queue_without_a_good_name_is_refused() -> None:
    with pytest.raises(InvalidName):
        ServerConfig(queues=["e mail"])


def test_services_alone_and_many_processes_are_allowed() -> None:
    found = ServerConfig(concurrency=0, processes=8)

    assert (found.concurrency, found.processes) == (0, 8)


@pytest.mark.parametrize("order", ORDERS)
def test_each_order_is_taken(order: str) -> None:
    assert config(order=order).order == order


def test_queues_are_kept_as_weights_in_their_order() -> None:
    plain = ServerConfig(queues=["email", "default"]).queues
    weighted = ServerConfig(queues={"slow": 1, "email": 3}).queues

    assert plain is not None
    assert weighted is not None
    assert list(plain.items()) == [("email", 1), ("default", 1)]
    assert list(weighted.items()) == [("slow", 1), ("email", 3)]


def test_a_later_change_of_the_callers_mapping_changes_nothing() -> None:
    weights = {"email": 3}
    found = ServerConfig(queues=weights)

    weights["email"] = 5

    assert found.queues == {"email": 3}


def test_a_config_can_be_compared_copied_replaced_hashed_and_sent_to_a_process() -> None:
    found = ServerConfig(concurrency=5, queues=["email"], lease=10)

    assert replace(found, concurrency=6) == ServerConfig(concurrency=6, queues=["email"], lease=10)
    assert copy.copy(found) == found
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own
    assert hash(found) == hash(copy.copy(found))


def test_it_is_made_from_what_was_resolved() -> None:
    settings = resolve(
        {"concurrency": 1, "max_attempts": 5},
        environ={"WINDLASS_CONCURRENCY": "7", "WINDLASS_QUEUES": "email=3,default"},
        project=None,
    )

    found = ServerConfig.from_settings(settings)

    assert found == ServerConfig(concurrency=7, queues={"email": 3, "default": 1})
    assert found.lease is UNSET


def test_what_somebody_gave_goes_over_the_app() -> None:
    settings = resolve({}, environ={"WINDLASS_LEASE": "5s", "WINDLASS_KEEP_DEAD": "none"}, project=None)

    found = ServerConfig.from_settings(settings)

    assert (found.lease, found.keep_dead, found.keep_succeeded) == (timedelta(seconds=5), None, UNSET)


def test_what_differs_from_the_defaults_is_what_code_gave() -> None:
    assert ServerConfig().given() == {}
    assert ServerConfig(concurrency=20, job_timeout=None, lease=5).given() == {
        "job_timeout": None,
        "lease": timedelta(seconds=5),
    }


def test_it_survives_the_way_through_the_sources() -> None:
    found = ServerConfig(concurrency=3, queues={"email": 2}, keep_max=5)

    assert ServerConfig.from_settings(resolve(found.given(), environ={}, project=None)) == found
