from datetime import timedelta
from typing import Any

import pytest

from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.job import PRIORITY_HIGH, PRIORITY_NORMAL
from windlass.core.retry import Exponential, NoRetry
from windlass.core.settings import QueueSettings, resolve

MINUTE = timedelta(minutes=1)


def test_without_settings_the_defaults_hold() -> None:
    found = resolve(QueueSettings()).of("email")

    assert (found.max_attempts, found.lease, found.priority) == (3, timedelta(seconds=30), PRIORITY_NORMAL)
    assert found.retry == Exponential()
    assert (found.keep.succeeded, found.keep.dead) == (timedelta(hours=24), timedelta(days=7))


def test_a_queue_wins_over_the_client_and_the_client_over_the_default() -> None:
    settings = resolve(
        QueueSettings(max_attempts=5, lease=60), {"email": QueueSettings(max_attempts=1, priority=PRIORITY_HIGH)}
    )

    email, other = settings.of("email"), settings.of("other")

    assert (email.max_attempts, email.lease, email.priority) == (1, MINUTE, PRIORITY_HIGH)
    assert (other.max_attempts, other.lease, other.priority) == (5, MINUTE, PRIORITY_NORMAL)


def test_none_keeps_for_ever_and_is_not_the_same_as_left_out() -> None:
    settings = resolve(QueueSettings(keep_dead=None), {"email": QueueSettings(keep_dead=60), "other": QueueSettings()})

    assert settings.of("email").keep.dead == MINUTE
    assert settings.of("other").keep.dead is None


def test_zero_is_a_setting_and_not_left_out() -> None:
    found = resolve(QueueSettings(lease=0, priority=0, keep_succeeded=0)).of("email")

    assert (found.lease, found.priority, found.keep.succeeded) == (timedelta(0), 0, timedelta(0))


def test_the_retention_has_every_queue() -> None:
    settings = resolve(QueueSettings(keep_succeeded=0), {"email": QueueSettings(keep_succeeded=60)})

    assert settings.retention.keep("email").succeeded == MINUTE
    assert settings.retention.keep("other").succeeded == timedelta(0)


def test_a_function_is_a_retry_policy() -> None:
    assert resolve(QueueSettings(retry=lambda _attempt, _error: None)).of("email").retry is not None
    assert resolve(QueueSettings(retry=NoRetry())).of("email").retry == NoRetry()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": None},
        {"lease": -1},
        {"lease": None},
        {"priority": -1},
        {"retry": "often"},
        {"retry": None},
        {"keep_dead": -1},
        {"keep_succeeded": "a day"},
    ],
)
def test_a_setting_that_cannot_mean_anything_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        resolve(QueueSettings(**wrong))
    with pytest.raises(InvalidValue):
        resolve(QueueSettings(), {"email": QueueSettings(**wrong)})


def test_the_settings_of_a_queue_without_a_good_name_are_refused() -> None:
    with pytest.raises(InvalidName):
        resolve(QueueSettings(), {"e mail": QueueSettings()})


def test_settings_of_a_queue_that_are_none_are_refused() -> None:
    wrong: Any = {"email": {"max_attempts": 3}}

    with pytest.raises(InvalidValue, match=r"of queue 'email' are a QueueSettings\(...\), not dict"):
        resolve(QueueSettings(), wrong)


def test_the_most_records_to_keep_hold_for_every_queue() -> None:
    settings = resolve(QueueSettings(), {"email": QueueSettings(keep_dead=60)}, keep_max=10)

    assert settings.retention.most == 10
    assert resolve(QueueSettings()).retention.most is None


@pytest.mark.parametrize("count", [-1, 1.5, True, "many"])
def test_a_number_of_records_that_is_none_is_refused(count: object) -> None:
    wrong: Any = count

    with pytest.raises(InvalidValue, match="keep_max"):
        resolve(QueueSettings(), keep_max=wrong)


@pytest.mark.parametrize("size", [-1, 1.5, True, None])
def test_a_limit_of_payloads_that_is_no_size_is_refused(size: object) -> None:
    wrong: Any = size

    with pytest.raises(InvalidValue, match="max_payload"):
        resolve(QueueSettings(), max_payload=wrong)
