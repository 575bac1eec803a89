from typing import Any

import pytest

from windlass.engine.context import JobLog
from windlass.engine.log_message import put_together


class Unspeakable:
    def __str__(self) -> str:
        message = "not today"
        raise RuntimeError(message)

    __repr__ = __str__


@pytest.mark.parametrize(
    "text, args, said",
    [
        ("sent %d of %s", (3, "ten"), "sent 3 of ten"),
        ("sent %(count)d", ({"count": 3},), "sent 3"),
        ("100 % of %d", (), "100 % of %d"),
        ("sent %d", ("three",), "sent %d ('three',)"),
        ("sent %d", (), "sent %d"),
        ("sent", (3,), "sent (3,)"),
        ("sent %d of %d", (3,), "sent %d of %d (3,)"),
        ("half a %", (3,), "half a % (3,)"),
        ("sent %s", (Unspeakable(),), "str that cannot be put together: RuntimeError"),
        (Unspeakable(), (), "Unspeakable that cannot be put together: RuntimeError"),
    ],
)
def test_arguments_go_into_the_text_and_what_does_not_fit_is_kept_beside_it(
    text: Any,  # noqa: ANN401 - whatever is given for a text
    args: tuple[object, ...],
    said: str,
) -> None:
    assert put_together(text, args) == said


class Heard:
    """As much of a desk as a log needs."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def note(self, level: str, text: str) -> None:
        self.lines.append((level, text))


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_every_level_takes_arguments(level: str) -> None:
    desk: Any = Heard()

    getattr(JobLog(desk), level)("sent %d", 3)

    assert desk.lines == [(level, "sent 3")]
