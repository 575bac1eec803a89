"""Stored values as people may see them."""

from typing import Any, cast

from windlass.config.masked import HIDDEN, sounds_secret


def hidden(value: object) -> Any:  # noqa: ANN401 - the JSON edge
    """Return plain JSON values with everything hidden that stands under a name that sounds secret."""
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        return {name: HIDDEN if sounds_secret(name) else hidden(each) for name, each in named.items()}
    if isinstance(value, list):
        return [hidden(each) for each in cast("list[object]", value)]
    return value
