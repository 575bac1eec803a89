from datetime import timedelta

import pytest

from windlass.config.settings import BY_NAME, PER_QUEUE, SETTINGS, Setting, find
from windlass.core.errors import InvalidValue
from windlass.core.settings import QueueSettings


def test_c88_the_default_lease_is_thirty_seconds() -> None:
    assert find("lease").default == timedelta(seconds=30)


def test_every_setting_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_takes_its_own_default_and_says_what_it_means(setting: Setting) -> None:
    assert setting.default is None or setting.check(setting.default) == setting.default
    assert setting.meaning
    assert setting.variable == "WINDLASS_" + setting.name.upper()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_default_that_is_shown_can_be_read_again(setting: Setting) -> None:
    if setting.name not in ("url", "name"):
        assert setting.read(setting.show(setting.default)) == setting.default


def test_a_single_queue_has_the_settings_that_code_can_give_it() -> None:
    assert {*PER_QUEUE, "retry"} == set(QueueSettings.__dataclass_fields__)


@pytest.mark.parametrize(
    "name, advice",
    [
        ("leese", "did you mean 'lease'"),
        ("eager", "in code alone, App"),
        ("retry", "in code alone, App"),
        ("token", "WINDLASS_TOKEN"),
        ("zzzzzz", "there are url, name, max_attempts"),
    ],
)
def test_an_unknown_setting_is_refused_with_advice(name: str, advice: str) -> None:
    with pytest.raises(InvalidValue, match=f"there is no setting '{name}': .*{advice}"):
        find(name)


def test_a_setting_that_no_single_queue_has_is_refused_for_one() -> None:
    with pytest.raises(InvalidValue, match="a single queue has only max_attempts, lease"):
        find("concurrency", PER_QUEUE)
