"""Damaged job records, read field by field."""

from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.core.duration import EPOCH
from windlass.core.states import State
from windlass.kit.damage import Unreadable, dead_reason, read_damaged_job

SOUND: dict[str, Any] = {
    "seq": 7,
    "id": "job-7",
    "queue": "email",
    "payload": b"hello",
    "codec": "raw",
    "headers": '{"a": "b"}',
    "priority": 1000,
    "state": "pending",
    "attempt": 1,
    "max_attempts": 3,
    "delivery": 2,
    "created_at": 1_000_000,
    "run_at": datetime(2026, 1, 2, tzinfo=UTC),
    "progress": "[1, 2, null]",
    "cancel_requested": 0,
}


def test_a_sound_record_has_no_damage() -> None:
    job = read_damaged_job(SOUND)

    assert job.damage is None
    assert (job.seq, job.payload, dict(job.headers), job.state) == (7, b"hello", {"a": "b"}, State.PENDING)
    assert job.progress == (1, 2, None)
    assert (job.created_at.timestamp(), job.run_at.year) == (1, 2026)


@pytest.mark.parametrize(
    "field, value, why",
    [
        ("created_at", 10**18, "created_at is out of range: 1000000000000000000"),
        ("created_at", 10**40, "created_at is out of range"),
        ("created_at", "soon", "created_at is not an integer: 'soon'"),
        ("run_at", datetime(2026, 1, 2), "run_at is not a time in UTC"),  # noqa: DTZ001 - that is the damage
        ("headers", "[1]", "headers is not an object of texts"),
        ("headers", '{"a": 1}', "headers is not a text"),
        ("headers", "{", "headers is not JSON"),
        ("headers", "[" * 100_000, "headers is not JSON"),
        ("payload", None, "payload is not bytes"),
        ("payload", "text", "payload is not bytes"),
        ("kind", b"\xff", "kind is not a text"),
        ("kind", "\ud800", "kind is not UTF-8"),
        ("queue", "", "queue is empty"),
        ("queue", Unreadable("is not UTF-8"), "queue is not UTF-8"),
        ("state", "lost", "state is no state: 'lost'"),
        ("attempt", True, "attempt is not an integer"),
        ("cancel_requested", 7, "cancel_requested is not a boolean"),
        ("progress", '{"done": "half"}', "progress is not a progress"),
        ("worker", 5, "worker is not a text"),
        ("history", None, ""),
    ],
)
def test_damage_names_the_field_and_leaves_the_others(field: str, value: object, why: str) -> None:
    job = read_damaged_job(SOUND | {field: value})

    assert (job.damage or "").startswith(why)
    assert job.id == "job-7"


def test_a_required_field_that_is_not_there_is_missing() -> None:
    job = read_damaged_job({"id": "job-7"})

    assert job.damage is not None
    assert "created_at is missing" in job.damage
    assert "tenant" not in job.damage
    assert (job.id, job.created_at, job.payload) == ("job-7", EPOCH, b"")


def test_optional_fields_that_are_empty_are_nothing() -> None:
    job = read_damaged_job(SOUND | {"headers": None})

    assert (job.damage, dict(job.headers), job.history, job.log, job.tenant) == (None, {}, (), (), None)


@pytest.mark.parametrize(
    "field, value",
    [
        ("headers", '{"authorization": "hush"'),
        ("headers", {"authorization": [b"hush"]}),
        ("headers", Unreadable("is not UTF-8: b'hush'")),
        ("payload", "hush"),
        ("result", "hush"),
    ],
)
def test_a_reason_quotes_nothing_that_may_be_secret(field: str, value: object) -> None:
    job = read_damaged_job(SOUND | {field: value})

    assert (job.damage or "").startswith(f"{field} is not ")
    assert "hush" not in (job.damage or "")


def test_a_reason_quotes_a_huge_value_in_short() -> None:
    job = read_damaged_job(SOUND | {"kind": b"x" * 1_000_000})

    assert 60 < len(job.damage or "") < 120


def test_the_last_error_of_a_job_that_was_set_aside_says_what_to_do() -> None:
    assert dead_reason("created_at is out of range: 7").startswith(
        "DamagedRecord: created_at is out of range: 7. No worker can run this job."
    )
