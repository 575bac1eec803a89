import json
import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.codec import RAW, JsonCodec, decode, encode
from windlass.core.errors import DecodeError, EncodeError

text = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=20,
)


class Colour(Enum):
    RED = "red"


@dataclass
class User:
    id: int
    name: str


@given(value=plain)
def test_a_plain_value_comes_back_as_it_was(value: object) -> None:
    data, name = encode(value)

    assert name == "json"
    assert decode(data, name) == value


@given(value=plain)
def test_what_is_written_is_json_for_everybody(value: object) -> None:
    data, _ = encode(value)

    assert json.loads(data) == value


@given(data=st.binary())
def test_bytes_pass_through(data: bytes) -> None:
    assert encode(data) == (data, RAW)
    assert decode(data, RAW) == data


@pytest.mark.parametrize("value", [bytearray(b"\0\xff"), memoryview(b"\0\xff")])
def test_other_bytes_pass_through_as_bytes(value: bytearray | memoryview) -> None:
    data, name = encode(value)

    assert (data, name, type(data)) == (b"\0\xff", RAW, bytes)


@pytest.mark.parametrize(
    "value, found",
    [
        (User(1, "Åsa"), {"id": 1, "name": "Åsa"}),
        (Colour.RED, "red"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        ((1, 2), [1, 2]),
    ],
)
def test_values_of_common_types_are_taken(value: object, found: object) -> None:
    data, name = encode(value)

    assert decode(data, name) == found


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def cyclic() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    "value",
    [object(), lambda: None, {1, object()}, 10**5000, "\ud800", {"\udfff": 1}, cyclic(), nested(100_000)],
    ids=["object", "function", "set", "huge integer", "surrogate", "surrogate key", "cycle", "deep"],
)
def test_a_value_that_json_cannot_hold_is_refused_with_advice(value: object) -> None:
    with pytest.raises(EncodeError, match="use plain values, or encode to bytes"):
        encode(value)


@pytest.mark.parametrize("value", [2**64, -(10**30), 10**400], ids=["2**64", "-10**30", "10**400"])
def test_an_integer_of_any_ordinary_size_comes_back_as_it_was(value: int) -> None:
    data, name = encode(value)

    assert decode(data, name) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know_is_written_as_null(value: float) -> None:
    data, name = encode([value])

    assert decode(data, name) == [None]


@pytest.mark.parametrize("data", [b"", b"{", b"nan", b"'a'", b"\xff\xfe", b'"\xff"', b"[1,]", b"1 2", b"[" * 100_000])
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data, "json")


def test_bytes_of_an_unknown_codec_are_refused_with_its_name() -> None:
    with pytest.raises(DecodeError, match="'pickle', which is not known here"):
        decode(b"x", "pickle")


@given(data=st.binary(max_size=50))
def test_whatever_is_stored_decodes_or_is_a_named_error(data: bytes) -> None:
    with suppress(DecodeError):
        JsonCodec().decode(data)
