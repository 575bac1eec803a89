"""Settings of a queue as a store keeps them: two layers of JSON, and what holds of both."""

import json
from dataclasses import fields
from typing import get_args

import pytest

from windlass.core.queue_settings import (
    NO_ROW,
    NO_SETTINGS,
    Layer,
    SettingsRow,
    StoredSettings,
    fields_of,
    is_damaged,
    with_settings,
)

PAUSED, RESUMED = StoredSettings(paused=True), StoredSettings(paused=False)
DAMAGED: list[str | bytes] = [
    b"\xff",
    "no json",
    "[]",
    "1",
    "null",
    '{"paused":1}',
    '{"paused":"yes"}',
    "[" * 100_000,
    "{",
]


def test_only_fields_that_are_set_stand_in_the_json() -> None:
    assert fields_of(NO_SETTINGS) == {}
    assert fields_of(RESUMED) == {"paused": False}


def test_each_field_has_a_check_of_its_values() -> None:
    for field in fields(StoredSettings):
        assert is_damaged(json.dumps({field.name: {"no": "value"}}))


def test_fields_of_a_newer_release_stay_in_a_layer() -> None:
    assert json.loads(with_settings('{"limit":4,"paused":true}', RESUMED)) == {"limit": 4, "paused": False}


def test_a_setting_that_is_not_given_stays() -> None:
    assert json.loads(with_settings('{"paused":true}', NO_SETTINGS)) == {"paused": True}


@pytest.mark.parametrize("text", ["", None, b"", "{}", '{"paused":true}', b'{"paused":false,"limit":{"running":4}}'])
def test_a_layer_that_can_be_read_is_not_damaged(text: str | bytes | None) -> None:
    assert not is_damaged(text)


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_layer_is_named_and_pauses_nothing(text: str | bytes) -> None:
    row = SettingsRow(override=text)

    assert row.damaged == ["override"]
    assert row.settings == NO_SETTINGS


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_override_leaves_what_is_declared(text: str | bytes) -> None:
    assert SettingsRow('{"paused":true}', text).settings == PAUSED


@pytest.mark.parametrize("text", DAMAGED)
def test_a_setting_can_be_written_over_a_damaged_layer(text: str | bytes) -> None:
    row = SettingsRow("", text, 3).changed(PAUSED, "override")

    assert (row.settings, row.damaged, row.revision) == (PAUSED, [], 4)


@pytest.mark.parametrize(
    "declared, override, settings",
    [
        (NO_SETTINGS, NO_SETTINGS, NO_SETTINGS),
        (PAUSED, NO_SETTINGS, PAUSED),
        (PAUSED, RESUMED, RESUMED),
        (RESUMED, PAUSED, PAUSED),
        (NO_SETTINGS, PAUSED, PAUSED),
    ],
)
def test_an_override_holds_in_place_of_what_is_declared(
    declared: StoredSettings, override: StoredSettings, settings: StoredSettings
) -> None:
    assert NO_ROW.changed(declared, "declared").changed(override, "override").settings == settings


@pytest.mark.parametrize("layer", get_args(Layer))
def test_each_change_counts_and_nothing_else_does(layer: Layer) -> None:
    once = NO_ROW.changed(PAUSED, layer)

    assert NO_ROW.changed(NO_SETTINGS, layer) is NO_ROW
    assert once.changed(PAUSED, layer) is once
    assert (once.revision, once.changed(RESUMED, layer).revision) == (1, 2)
