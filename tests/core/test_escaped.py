import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.escaped import escaped


@pytest.mark.parametrize(
    "text,shown",
    [
        ("plain", "plain"),
        ("grüße 日本 🎉", "grüße 日本 🎉"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_by_its_number(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_some_characters_may_stay() -> None:
    assert escaped("a\n\x1bb", keep="\n") == "a\n\\x1bb"


@given(st.text())
def test_nothing_unprintable_is_left_of_any_text(text: str) -> None:
    shown = escaped(text)

    shown.encode()
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in shown)
