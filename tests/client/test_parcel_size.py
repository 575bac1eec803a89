import pytest

from tests.engine.executors.given import a_job
from windlass.client import parcel_size
from windlass.client.parcel_size import fitting
from windlass.core.ids import JobId
from windlass.core.job import Job, LogLine
from windlass.core.moving import HeldKey, Packed
from windlass.testing.clock import START


def numbered(number: int, *, payload: int = 0, log: int = 0) -> Job:
    lines = (LogLine(START, "", "x" * log, 1),)
    return a_job(b"x" * payload, id=JobId(f"01938c6e-1111-7000-8000-{number:012}"), log=lines)


def test_a_parcel_is_measured_by_payloads_and_logs_and_has_the_keys_of_its_jobs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parcel_size, "MOST_BYTES", 1_000)
    jobs = [numbered(1, payload=600), numbered(2, log=300), numbered(3, payload=200)]
    keys = [HeldKey(f"queue||q|{job.id}", job.id, "finished", None, b"") for job in jobs]

    assert fitting(Packed(jobs, keys)) == Packed(jobs[:2], keys[:2])


def test_one_job_goes_over_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel_size, "MOST_BYTES", 1_000)
    jobs = [numbered(1, log=9_000), numbered(2)]

    assert fitting(Packed(jobs, [])) == Packed(jobs[:1], [])
