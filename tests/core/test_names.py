import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import InvalidName, InvalidValue, ValueTooLarge
from windlass.core.names import (
    MAX_HEADER,
    MAX_KEY,
    MAX_VALUE,
    check_header,
    check_key,
    check_limit,
    check_max_attempts,
    check_name,
    check_priority,
    check_value,
    shortened,
)

ALLOWED = string.ascii_letters + string.digits + "_-.:/@#"
HOSTILE = [
    "a'b",
    'a"b',
    "a;--",
    "a%",
    "a*",
    "a\nb",
    "a\n",
    "a\0b",
    "\u202eabc",
    "a\U0001f600",
    "{tag}",
    "caf\u00e9",
    "cafe\u0301",
    "a b",
    " a",
    "a\\b",
    "a|b",
    "a?b",
    "a=b",
    "\u0661",
    "\u212a",
    "\ud800",
]


@pytest.mark.parametrize("character", ALLOWED)
def test_a_name_may_have_this_character(character: str) -> None:
    assert check_name(character, "queue") == character


@pytest.mark.parametrize("character", [chr(code) for code in range(256) if chr(code) not in ALLOWED])
def test_a_name_may_not_have_this_character(character: str) -> None:
    with pytest.raises(InvalidName, match=f"U\\+{ord(character):04X}"):
        check_name(f"a{character}b", "queue")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName) as refused:
        check_name(name, "queue")

    assert refused.value.what == "queue"
    assert refused.value.name == name


@pytest.mark.parametrize("name", ["../", "../../etc", "a:b", "a/b", "#", "@", ".", "-", "_", "A", "a"])
def test_a_strange_name_of_allowed_characters_is_taken_as_it_is(name: str) -> None:
    assert check_name(name, "queue") == name


@given(name=st.text(st.sampled_from(ALLOWED), min_size=1, max_size=200))
def test_a_name_of_allowed_characters_comes_back_as_it_is(name: str) -> None:
    assert check_name(name, "queue") == name


@given(name=st.text())
def test_a_name_is_taken_if_and_only_if_it_keeps_the_rule(name: str) -> None:
    good = 1 <= len(name) <= 200 and set(name) <= set(ALLOWED)

    try:
        check_name(name, "queue")
    except InvalidName:
        assert not good
    else:
        assert good


def test_a_name_has_at_most_two_hundred_characters() -> None:
    assert check_name("a" * 200, "queue") == "a" * 200
    with pytest.raises(InvalidName, match="201 characters"):
        check_name("a" * 201, "queue")


def test_a_very_long_name_makes_a_short_message() -> None:
    with pytest.raises(InvalidName, match="10,000 characters") as refused:
        check_name("a" * 10_000, "queue")

    assert len(str(refused.value)) < 300


def test_the_empty_name_is_refused_and_does_not_mean_none() -> None:
    with pytest.raises(InvalidName, match="is empty"):
        check_name("", "tenant")


@pytest.mark.parametrize("name", [None, 1, b"a", ["a"]])
def test_a_name_is_a_string(name: object) -> None:
    with pytest.raises(InvalidName, match="not a string"):
        check_name(name, "kind")


@pytest.mark.parametrize("priority", [0, 1000, 2**31 - 1])
def test_a_priority_is_an_integer_from_zero_up(priority: int) -> None:
    assert check_priority(priority) == priority


@pytest.mark.parametrize("priority", [-1, 2**31, 1.0, "1", None, True])
def test_another_priority_is_refused(priority: object) -> None:
    with pytest.raises(InvalidValue, match="priority"):
        check_priority(priority)


@pytest.mark.parametrize("attempts", [0, -1, 1.5, True, 2**31])
def test_a_number_of_attempts_below_one_or_of_another_type_is_refused(attempts: object) -> None:
    with pytest.raises(InvalidValue, match="max_attempts"):
        check_max_attempts(attempts)


@pytest.mark.parametrize("limit", [-1, 0.5, None, False])
def test_a_limit_below_zero_or_of_another_type_is_refused(limit: object) -> None:
    with pytest.raises(InvalidValue, match="limit"):
        check_limit(limit)


@pytest.mark.parametrize(
    "key, data", [(b"\0\xff", b"\0\xff"), ("clé", "clé".encode()), ("a" * MAX_KEY, b"a" * MAX_KEY)]
)
def test_a_key_is_bytes_or_text(key: bytes | str, data: bytes) -> None:
    assert check_key(key) == data


@pytest.mark.parametrize("key", [b"", "", b"a" * (MAX_KEY + 1), "é" * (MAX_KEY // 2 + 1), 1, None, "\ud800"])
def test_a_key_that_is_empty_too_long_or_no_text_is_refused(key: object) -> None:
    with pytest.raises(InvalidValue, match="kv key"):
        check_key(key)


def test_a_value_has_at_most_its_limit() -> None:
    assert check_value(b"x" * MAX_VALUE) == b"x" * MAX_VALUE
    with pytest.raises(ValueTooLarge) as refused:
        check_value(b"x" * (MAX_VALUE + 1))

    assert (refused.value.size, refused.value.limit) == (MAX_VALUE + 1, MAX_VALUE)


@pytest.mark.parametrize("value", ["text", None, 1, bytearray(b"x")])
def test_a_value_is_bytes(value: object) -> None:
    with pytest.raises(InvalidValue, match="encode it first"):
        check_value(value)


def test_a_header_is_a_name_and_a_text_within_its_limit() -> None:
    check_header("trace:id", "ü" * (MAX_HEADER // 2))

    with pytest.raises(InvalidName):
        check_header("trace id", "")
    with pytest.raises(ValueTooLarge):
        check_header("trace", "ü" * (MAX_HEADER // 2 + 1))


@pytest.mark.parametrize("value", [1, None, b"x", "\udfff"])
def test_a_header_that_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="trace"):
        check_header("trace", value)


@given(text=st.text(max_size=100), most=st.integers(20, 60))
def test_a_shortened_text_keeps_its_ends_within_the_limit(text: str, most: int) -> None:
    short = shortened(text, most)

    assert len(short) <= most
    assert short == text if len(text) <= most else (text.startswith(short[:5]) and text.endswith(short[-5:]))
