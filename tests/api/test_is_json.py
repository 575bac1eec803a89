"""Whether bytes can stand in JSON as they are is told without making values of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.api.jobs import is_json

NOT = (
    b"",
    b" ",
    b"[1,",
    b"[1,]",
    b'{"a" 1}',
    b"NaN",
    b"01",
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"\x01"',
    b'"\\ud800"',
    b"1 2",
    b"1e999",
    b"[1E+400]",
    b"9" * 400 + b".0",
    b"[" * 100_000,
)


@pytest.mark.parametrize("data", NOT)
def test_what_cannot_be_read_is_no_json(data: bytes) -> None:
    assert not is_json(data)


@pytest.mark.parametrize("data", [b"1e99", b"1e-999", b'"1e999"', '["Größe"]'.encode(), b"9" * 300, b" {} \n"])
def test_what_can_be_read_is_json(data: bytes) -> None:
    assert is_json(data)


@given(
    st.lists(
        st.sampled_from(
            [b"[", b"]", b"{", b"}", b'"', b":", b",", b"1", b"e9", b"99", b".", b"-", b"\\u00e9", b"\xc3\xa9", b"\xff"]
        ),
        max_size=12,
    ).map(b"".join)
)
def test_it_is_json_when_it_can_be_read(data: bytes) -> None:
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError):
        assert not is_json(data)
    else:
        assert is_json(data)
