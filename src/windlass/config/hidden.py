"""Stored values as people may see them."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from windlass.config.masked import HIDDEN, sounds_secret
from windlass.handlers.secret_paths import EACH, HEADER, Path, paths_in

_ALL: Final = sys.maxsize
_LOOKED_INTO: Final = (str, dict, list, Raw)
_SPLIT: Final = 16 * 1024
"""Bytes of JSON that are read in one go: no other thread runs meanwhile. Much more is read part by part."""
_FEW: Final = 500
"""Lists and objects that are read in one go, however long they are: what is in them takes little time."""
_DEEPEST_SPLIT: Final = 64
"""Levels that are read part by part: each looks again at what is below it."""
_MARK: Final = re.compile(rb"[ \t\n\r]*([{\[])")


def hidden(value: object, *, most: int | None = None) -> Any:  # noqa: ANN401 - the JSON edge
    """Return plain JSON values with everything hidden that stands under a name that sounds secret.

    With `most` only the beginning is looked at and returned: at least so many characters of the value written as JSON.
    """
    return _Walk((), most).of(value)


def hidden_payload(
    value: object, headers: Mapping[str, str], further: Sequence[Path] = (), *, most: int | None = None
) -> Any:  # noqa: ANN401
    """Return the payload of a job with what is hidden that its headers, or `further` paths, tell to be secret.

    What sounds secret is hidden too. Paths that lead nowhere are ignored. `most` cuts as in `hidden`.
    """
    return _Walk([*paths_in(headers), *further], most).of(value)


def hidden_in_json(
    data: bytes, headers: Mapping[str, str], further: Sequence[Path] = (), *, most: int | None = None
) -> Any:  # noqa: ANN401
    """Return what JSON says, with what is hidden that `hidden_payload` hides, without reading more than is returned.

    Raises `msgspec.MsgspecError` and `ValueError` for what is no JSON, and `RecursionError` for what is too deep.
    """
    return _Walk([*paths_in(headers), *further], most).of(_checked(data))


def json_with_hidden(data: bytes, headers: Mapping[str, str]) -> bytes:
    """Return JSON, written anew, with what is hidden that `hidden_payload` hides; raises as `hidden_in_json` does."""
    shown = _Walk(paths_in(headers), None, writes=True).of(_checked(data))
    return msgspec.json.encode(shown)


def _checked(data: bytes) -> Raw:
    if not data.isascii():
        # parts that are passed over are looked at no further
        data.decode()
    return msgspec.json.decode(data, type=Raw)


def hidden_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with what is hidden that sounds secret; the one that tells what is secret is not."""
    return {name: HIDDEN if sounds_secret(name) and name != HEADER else value for name, value in headers.items()}


class _Walk:
    """One walk through a value, which looks at each part of it once, however many paths there are.

    The paths that are open at a part are the bits of a number: bit n for path n.
    """

    def __init__(self, paths: Sequence[Path], most: int | None, *, writes: bool = False) -> None:
        depth = max(map(len, paths), default=0)
        self._open = (1 << len(paths)) - 1
        self._each = [0] * (depth + 1)
        """The paths that go on with `EACH`, by the number of steps before it."""
        self._named: list[dict[str, int]] = [{} for _ in range(depth + 1)]
        """The paths that go on with a name, likewise."""
        self._ends = [0] * (depth + 2)
        """The paths that end, by the number of their steps."""
        self._left = _ALL if most is None else most
        self._writes = writes
        """Whether parts that are JSON stay JSON."""
        for number, path in enumerate(paths):
            bit = 1 << number
            self._ends[len(path)] |= bit
            for steps, step in enumerate(path):
                if step == EACH:
                    self._each[steps] |= bit
                else:
                    self._named[steps][step] = self._named[steps].get(step, 0) | bit

    def of(self, value: object) -> object:
        return HIDDEN if self._ends[0] else self._part(value, self._open, 0)

    def _part(self, value: object, paths: int, steps: int) -> object:
        """Return a part that `paths` lead to or through, after so many steps."""
        if isinstance(value, Raw):
            return self._json(value, paths, steps)
        if isinstance(value, dict):
            return self._object(cast("dict[str, object]", value), paths, steps)
        if isinstance(value, list):
            return self._list(cast("list[object]", value), paths, steps)
        if isinstance(value, str):
            if len(value) > self._left:
                value = value[: max(0, self._left)]
            self._left -= len(value)
        return value

    def _json(self, data: Raw, paths: int, steps: int) -> object:
        """Return a part that is JSON still, read as a whole or, where it is large, part by part."""
        kind = _MARK.match(data) if len(data) > _SPLIT and steps < _DEEPEST_SPLIT and _has_many_parts(data) else None
        if kind is None:
            shown = self._part(msgspec.json.decode(data), paths, steps)
        elif kind[1] == b"{":
            shown = self._object({**msgspec.json.decode(data, type=dict[str, Raw])}, paths, steps)
        else:
            shown = self._groups(msgspec.json.decode(data, type=list[Raw]), paths, steps)
        return Raw(msgspec.json.encode(shown)) if self._writes else shown

    def _groups(self, values: list[Raw], paths: int, steps: int) -> list[object]:
        """Return what a list has that is read part by part; small values are read together."""
        shown: list[object] = []
        for group in _grouped(values):
            if self._left <= 0:
                break
            if len(group) == 1:
                shown += self._list([*group], paths, steps)
                continue
            some = self._list(msgspec.json.decode(b"[%b]" % b",".join(group)), paths, steps)
            # several values with commas between them stand in a list as one does
            shown += [Raw(msgspec.json.encode(some)[1:-1])] if self._writes else some
        return shown

    def _object(self, named: dict[str, object], paths: int, steps: int) -> dict[str, object]:
        shown: dict[str, object] = {}
        for name, value in named.items():
            if self._left <= 0:
                break
            self._left -= len(name) + 1
            onward = paths and paths & (self._each[steps] | self._named[steps].get(name, 0))
            if sounds_secret(name) or (onward and onward & self._ends[steps + 1]):
                shown[name] = HIDDEN
            elif _is_looked_into(value):
                shown[name] = self._part(value, onward, steps + 1)
            else:
                shown[name] = value
        return shown

    def _list(self, values: list[object], paths: int, steps: int) -> list[object]:
        onward = paths and paths & self._each[steps]
        if onward and onward & self._ends[steps + 1]:
            return [HIDDEN] * min(len(values), max(0, self._left))
        shown: list[object] = []
        for value in values:
            if self._left <= 0:
                break
            self._left -= 1
            shown.append(self._part(value, onward, steps + 1) if _is_looked_into(value) else value)
        return shown


def _has_many_parts(data: Raw) -> bool:
    text = bytes(data)
    return text.count(b"[") + text.count(b"{") > _FEW


def _grouped(values: Sequence[Raw]) -> Iterator[Sequence[Raw]]:
    begin, size = 0, 0
    for at, value in enumerate(values):
        if at > begin and size + len(value) > _SPLIT:
            yield values[begin:at]
            begin, size = at, 0
        size += len(value)
    yield values[begin:]


def _is_looked_into(value: object) -> bool:
    return isinstance(value, _LOOKED_INTO)
