"""What a caller sends becomes a record."""

import msgspec
import pytest

from windlass.api.claims import ClaimRequest
from windlass.api.job_calls import EnqueueAsked
from windlass.api.upkeep_calls import AuditWritten
from windlass.http.asked import body_reader
from windlass.http.refusal import Refusal

read = body_reader(ClaimRequest)


@pytest.mark.parametrize("written, limit", [("7", 7), ("7.0", 7), ("1e2", 100), ("70E-1", 7)])
def test_a_whole_number_may_be_written_in_each_way_that_json_knows(written: str, limit: int) -> None:
    asked = read(f'{{"queues": ["a"], "limit": {written}, "lease": 1.5}}'.encode())

    assert (asked.limit, asked.lease, type(asked.limit)) == (limit, 1.5, int)


def test_beside_a_whole_number_with_a_point_a_payload_stays_as_it_was_written() -> None:
    asked = body_reader(EnqueueAsked)(b'{"jobs": [{"queue": "a", "priority": 5.0, "payload": {"n": 1.0, "n": 2 }}]}')

    assert asked.jobs[0].priority == 5
    payload = asked.jobs[0].payload
    assert isinstance(payload, msgspec.Raw)
    assert bytes(payload) == b'{"n": 1.0, "n": 2 }'


@pytest.mark.parametrize(
    "written",
    [
        '"limit": 1.5',
        '"limit": 1.0, "wait": "3"',
        '"limit": 1.0, "by_priority": "true"',
        '"limit": 1.0, "lease": "null"',
        '"limit": 1.0, "kinds": ["a", 7]',
        '"limit": "1"',
        '"limit": 20000.0',
        '"limit": 1e400',
    ],
)
def test_what_is_no_whole_number_or_of_another_type_is_refused(written: str) -> None:
    with pytest.raises(Refusal):
        read(f'{{"queues": ["a"], {written}}}'.encode())


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    written = {"at": "2026-01-01T00:00:00Z", "actor": "1", "action": "2", "target": "3", "detail": {"4": "5"}}

    [entry] = body_reader(AuditWritten)(msgspec.json.encode({"entries": [written]})).entries

    assert (entry.actor, entry.detail) == ("1", {"4": "5"})
