"""Reads the plain part of YAML that the pages keep to, and refuses everything else."""

import json
import re
from typing import Any, Final

KEY: Final = re.compile(r"([A-Za-z][\w.-]*):(?: (.+))?")
PLAIN: Final = re.compile(r"[\w./][\w./:-]*")

Line = tuple[int, str]


def read(text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what `text` holds: mappings and lists by indentation, lists in one line, texts and numbers."""
    lines = [(len(line) - len(line.lstrip(" ")), line.strip()) for line in text.splitlines() if line.strip()]
    found, rest = _block(lines, lines[0][0])
    assert not rest, f"what follows is not indented as what is above: {rest[0]}"
    return found


def _block(lines: list[Line], indent: int) -> tuple[Any, list[Line]]:
    return _list(lines, indent) if lines[0][1].startswith("- ") else _mapping(lines, indent)


def _list(lines: list[Line], indent: int) -> tuple[list[Any], list[Line]]:
    found: list[Any] = []
    while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
        # the dash is as good as two spaces
        text = lines[0][1][2:]
        if KEY.fullmatch(text):
            item, lines = _mapping([(indent + 2, text), *lines[1:]], indent + 2)
        else:
            item, lines = _value(text), lines[1:]
        found.append(item)
    return found, lines


def _mapping(lines: list[Line], indent: int) -> tuple[dict[str, Any], list[Line]]:
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent and (pair := KEY.fullmatch(lines[0][1])):
        key, text = pair.groups()
        assert key not in found, f"{key} stands there twice"
        lines = lines[1:]
        if text is not None:
            found[key] = _value(text)
        elif lines and lines[0][0] > indent:
            found[key], lines = _block(lines, lines[0][0])
        else:
            found[key] = None
    assert found, f"neither a list nor a mapping: {lines[0]}"
    return found, lines


def _value(text: str) -> Any:  # noqa: ANN401 - a text, a number, a list
    if text[0] in '["':
        return json.loads(text)
    assert PLAIN.fullmatch(text), f"quote it: {text}"
    return int(text) if text.isdigit() else {"true": True, "false": False}.get(text, text)
