"""Settings of a queue that its store keeps: what the code of an app declares, and over it what an operator has set.

A store keeps each layer as the text of a JSON object, so a further setting needs no change of its schema. Fields of a
newer release stay in a layer when an older one writes to it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

Layer: TypeAlias = Literal["declared", "override"]
"""Part of the settings of a queue: a value of `override` holds in place of the same field of `declared`."""
Text: TypeAlias = str | bytes | None
"""A layer as a store keeps it: the text of a JSON object; empty or None where nothing was set."""


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """Settings of a queue that hold for all servers. A field that is None is not set."""

    paused: bool | None = None
    """No claim is given."""


NO_SETTINGS: Final = StoredSettings()
_IS_VALID: Final[Mapping[str, Callable[[object], bool]]] = {"paused": lambda value: isinstance(value, bool)}
"""Whether a value is one that a field may have, for each field of `StoredSettings`."""


def fields_of(settings: StoredSettings) -> dict[str, Any]:
    """Return the fields that are set, as they stand in JSON."""
    return {name: value for name in _IS_VALID if (value := getattr(settings, name)) is not None}


def is_damaged(text: Text) -> bool:
    """Whether a layer is no JSON object, or has a value that its field cannot have."""
    found = _object_in(text)
    return found is None or not all(_is_valid(name, value) for name, value in found.items())


def with_settings(text: Text, settings: StoredSettings) -> str:
    """Return a layer with the fields that are set in `settings`; what else it has stays, unless it is no object."""
    return json.dumps({**(_object_in(text) or {}), **fields_of(settings)}, separators=(",", ":"), sort_keys=True)


class SettingsRow(NamedTuple):
    """The settings of one queue as a store keeps them."""

    declared: Text = ""
    override: Text = ""
    revision: int = 0
    """Number of changes."""

    def changed(self, settings: StoredSettings, layer: Layer) -> "SettingsRow":
        """Return the row with these settings in a layer; the same row where they are in it already."""
        before = self.declared if layer == "declared" else self.override
        after = with_settings(before, settings)
        if after == with_settings(before, NO_SETTINGS) and not is_damaged(before):
            return self
        declared, override = (after, self.override) if layer == "declared" else (self.declared, after)
        return SettingsRow(declared, override, self.revision + 1)

    @property
    def settings(self) -> StoredSettings:
        """The settings that hold, of both layers; a value that is damaged counts as not set."""
        if not self.declared and not self.override:
            return NO_SETTINGS
        found = {**_valid_in(self.declared), **_valid_in(self.override)}
        return StoredSettings(**found) if found else NO_SETTINGS

    @property
    def damaged(self) -> list[Layer]:
        """The layers that cannot be read, or have a value that cannot be read."""
        layers: tuple[tuple[Layer, Text], ...] = (("declared", self.declared), ("override", self.override))
        return [layer for layer, text in layers if is_damaged(text)]


NO_ROW: Final = SettingsRow()


def _valid_in(text: Text) -> dict[str, Any]:
    found = _object_in(text) or {}
    return {name: found[name] for name in _IS_VALID if name in found and _is_valid(name, found[name])}


def _is_valid(name: str, value: object) -> bool:
    """Whether a field may have this value; of fields of a newer release nothing is known."""
    return name not in _IS_VALID or _IS_VALID[name](value)


def _object_in(text: Text) -> dict[str, Any] | None:
    """Return the object that a text is, an empty one for an empty text; None where it is none."""
    if not text:
        return {}
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
