from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import InvalidValue
from windlass.core.ids import job_id, new_ids

millis = st.integers(0, 2**48 - 1)


@given(count=st.integers(0, 5), at=millis, data=st.data())
def test_a_new_id_is_a_uuid_of_version_seven_that_tells_its_time(count: int, at: int, data: st.DataObject) -> None:
    randomness = data.draw(st.binary(min_size=10 * count, max_size=10 * count))

    ids = new_ids(count, millis=at, randomness=randomness)

    assert len(ids) == count
    for each in ids:
        parsed = UUID(each)
        assert parsed.version == 7
        assert parsed.variant == "specified in RFC 4122"
        assert parsed.int >> 80 == at
        assert str(parsed) == each


@given(
    earlier=millis, later=millis, first=st.binary(min_size=10, max_size=10), second=st.binary(min_size=10, max_size=10)
)
def test_ids_sort_by_the_time_that_they_were_made(earlier: int, later: int, first: bytes, second: bytes) -> None:
    [a] = new_ids(1, millis=min(earlier, later), randomness=first)
    [b] = new_ids(1, millis=max(earlier, later), randomness=second)

    assert earlier == later or a < b


def test_ids_of_one_batch_differ_by_their_randomness() -> None:
    assert len(set(new_ids(2, millis=1, randomness=bytes(10) + b"\xff" * 10))) == 2


@pytest.mark.parametrize(
    "given",
    [
        "01900000-0000-7000-8000-0000000000AB",
        "0190000000007000800000000000" + "00ab",
        "{01900000-0000-7000-8000-0000000000ab}",
        "urn:uuid:01900000-0000-7000-8000-0000000000ab",
        UUID("01900000-0000-7000-8000-0000000000ab"),
    ],
)
def test_every_form_of_a_uuid_becomes_the_canonical_one(given: UUID | str) -> None:
    assert job_id(given) == "01900000-0000-7000-8000-0000000000ab"


@pytest.mark.parametrize("given", ["", "42", "not-a-uuid", "0" * 31, "0" * 33, "'; drop table job;--", "é" * 36])
def test_text_that_is_no_uuid_is_refused(given: str) -> None:
    with pytest.raises(InvalidValue, match="a job id is a UUID"):
        job_id(given)


@pytest.mark.parametrize("given", [42, None, b"01900000-0000-7000-8000-0000000000ab", True])
def test_what_is_neither_uuid_nor_text_is_refused(given: object) -> None:
    with pytest.raises(InvalidValue, match=type(given).__name__):
        job_id(given)
