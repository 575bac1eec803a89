"""Stored values as people may see them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from windlass.config.masked import HIDDEN, sounds_secret
from windlass.handlers.secret_paths import EACH, HEADER, Path, paths_in


def hidden(value: object) -> Any:  # noqa: ANN401 - the JSON edge
    """Return plain JSON values with everything hidden that stands under a name that sounds secret."""
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        return {name: HIDDEN if sounds_secret(name) else hidden(each) for name, each in named.items()}
    if isinstance(value, list):
        return [hidden(each) for each in cast("list[object]", value)]
    return value


def hidden_payload(value: object, headers: Mapping[str, str], further: Sequence[Path] = ()) -> Any:  # noqa: ANN401
    """Return the payload of a job with what is hidden that its headers, or `further` paths, tell to be secret.

    What sounds secret is hidden too. Paths that lead nowhere are nobody's concern.
    """
    return hidden(_without(value, [*paths_in(headers), *further]))


def hidden_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with what is hidden that sounds secret; the one that tells what is secret is not."""
    return {name: HIDDEN if sounds_secret(name) and name != HEADER else value for name, value in headers.items()}


def _without(value: object, paths: Sequence[Path]) -> object:
    if not paths:
        return value
    if not all(paths):
        return HIDDEN
    rest = [path[1:] for path in paths if path[0] == EACH]
    if isinstance(value, list):
        return [_without(each, rest) for each in cast("list[object]", value)] if rest else cast("list[object]", value)
    if not isinstance(value, dict):
        return value
    named = cast("dict[str, object]", value)
    inner: dict[str, list[Path]] = {name: list(rest) for name in named} if rest else {}
    for name, *steps in paths:
        if name in named:
            inner.setdefault(name, []).append(tuple(steps))
    return named | {name: _without(named[name], further) for name, further in inner.items()}
