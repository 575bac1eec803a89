"""What a claim was given, as the API writes and reads it."""

from datetime import UTC, datetime

import msgspec

from windlass.api.claims import Claims, claims_of, claims_told
from windlass.core.requests import Claimed

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_claim_without_a_next_time_is_written_as_ever() -> None:
    assert msgspec.json.encode(claims_told(Claimed([]), as_bytes=False)) == b'{"claims":[]}'


def test_the_next_time_of_a_claim_is_read_as_it_was_written() -> None:
    written = msgspec.json.encode(claims_told(Claimed([], AT), as_bytes=False))

    assert claims_of(msgspec.json.decode(written, type=Claims)) == Claimed([], AT)


def test_claims_one_after_the_other_have_the_earlier_of_their_next_times() -> None:
    later = AT.replace(hour=1)

    assert Claimed([], later).and_then(Claimed([], AT)).next_at == AT
    assert Claimed([]).and_then(Claimed([], later)).next_at == later
    assert Claimed([]).and_then(Claimed([])).next_at is None
