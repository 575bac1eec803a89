"""Between Python values and JSON: pydantic models, numbers that JSON has not, and the path of a bad value."""

import math
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from windlass.codec import is_model

BAD_VALUE: Final = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What reading or writing a value may raise: classes of the user's own take part in it."""

_PLACE: Final = re.compile(r"^(?P<problem>.*?) - at `(?:key in )?(?P<path>\$.*?)`$", re.DOTALL)
_FIELD: Final = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>[^`]+)`")
_SAID: Final = {"missing required": "is missing, and has no default", "contains unknown": "there is no such name"}


class BadModel(ValueError):
    """A pydantic model refused its values; `path` leads to the bad one from the model on."""

    def __init__(self, problem: str, path: str) -> None:
        super().__init__(problem)
        self.path = path


def build(wanted: type, value: Any) -> Any:  # noqa: ANN401 - the JSON edge
    """Return a value of a class that msgspec does not know, made from what JSON said."""
    if wanted is object:
        # whatever it is, it is one
        return value
    if not is_model(wanted):
        message = f"{wanted.__qualname__} cannot be made from JSON: use a dataclass, a msgspec.Struct or plain values"
        raise TypeError(message)
    model: Any = wanted
    try:
        # as JSON, not as Python values: a strict model takes a date from the text of one only there
        return model.model_validate_json(msgspec.json.encode(value))
    except ValueError as error:
        raise _bad_model(error) from error


def problem_and_path(error: BaseException) -> tuple[str, str]:
    """Return what is wrong with a value, and the path that leads to it."""
    if isinstance(error, RecursionError):
        return "nested too deep", "$"
    text = str(error) or type(error).__name__
    place = _PLACE.match(text)
    problem, path = (place["problem"], place["path"]) if place else (text, "$")
    field = _FIELD.search(problem)
    if field is not None:
        problem, path = _SAID[field["what"]], f"{path}.{field['name']}"
    if isinstance(error.__cause__, BadModel):
        path += error.__cause__.path
    return problem.replace("`", ""), path


def not_finite(value: object) -> str | None:
    """Return the path of a number that JSON cannot say, NaN or an infinity, in plain values."""
    left: list[tuple[str, object]] = [("$", value)]
    while left:
        path, item = left.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return path
        left.extend(_inside(path, item))
    return None


def _inside(path: str, item: object) -> list[tuple[str, object]]:
    if isinstance(item, dict):
        named = cast("dict[str, object]", item)
        return [(f"{path}.{key}", each) for key, each in named.items()]
    if isinstance(item, (list, tuple)):
        listed = cast("list[object]", item)
        return [(f"{path}[{index}]", each) for index, each in enumerate(listed)]
    return []


def _bad_model(error: Any) -> BadModel:  # noqa: ANN401 - a class of a package that may be missing
    errors: Sequence[Any] = error.errors() if hasattr(error, "errors") else ()
    if not errors:
        return BadModel(str(error), "")
    first = errors[0]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
    return BadModel(str(first["msg"]), path)
