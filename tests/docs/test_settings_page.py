import re

import pytest

from tests.docs.pages import rows, text_of
from windlass.config.settings import SETTINGS, Setting, find
from windlass.core.errors import InvalidValue

PAGE = "reference/settings.md"
TOLD = {name: cells for name, *cells in rows(PAGE, "setting")}
WRITTEN = rows(PAGE, "what")


def test_the_page_has_every_setting_in_order() -> None:
    assert list(TOLD) == [setting.name for setting in SETTINGS]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_stands_on_the_page_as_in_the_table(setting: Setting) -> None:
    default, variable, key, meaning = TOLD[setting.name]

    assert (default, variable, meaning) == (setting.show(setting.default), setting.variable, setting.meaning)
    assert key == (f"`{setting.name}`, also for a queue" if setting.per_queue else setting.name)


@pytest.mark.parametrize(
    "what, name",
    [
        ("a duration", "lease"),
        ("yes or no", "services"),
        ("none, where it is allowed", "keep_dead"),
        ("queues", "queues"),
    ],
)
def test_what_the_page_writes_can_be_read(what: str, name: str) -> None:
    [cell] = [cell for first, cell, _ in WRITTEN if first == what]

    for text in re.findall(r"`([^`]+)`", cell) or [cell]:
        find(name).read(text)


def test_the_message_that_the_page_shows_is_the_one_of_the_code() -> None:
    with pytest.raises(InvalidValue) as refused:
        find("lease").read("soon")

    assert f"`WINDLASS_LEASE: {refused.value}`" in text_of(PAGE)
