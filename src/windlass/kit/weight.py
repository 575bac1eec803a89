"""What calls that gather weigh: jobs and settlements count, and the bytes that they bring along."""

from collections.abc import Mapping, Sequence

from windlass.core.job import PreparedJob
from windlass.core.requests import Settlement
from windlass.core.verdict import ToSucceeded


def bytes_of_jobs(jobs: Sequence[PreparedJob]) -> int:
    """Return how large jobs are with what they bring along, but for what each has."""
    size = sum([len(job.payload) for job in jobs])
    for job in jobs:
        if job.headers:
            # as many bytes as characters, or a few times that
            size += sum([len(name) + len(text) for name, text in job.headers.items()])
        if job.kv:
            size += _bytes_of_values(job.kv)
    return size


def weight_of_jobs(jobs: Sequence[PreparedJob], *, bytes_each: int) -> int:
    """Return what an enqueue weighs: 1 for a job, and for so many bytes."""
    return len(jobs) + bytes_of_jobs(jobs) // bytes_each


def weight_of_settlements(settlements: Sequence[Settlement], *, bytes_each: int) -> int:
    """Return what settlements weigh: 1 for each, for a job that one brings along, and for so many bytes."""
    weight = len(settlements)
    size = 0
    for _, _, verdict, _, then, kv in settlements:
        if type(verdict) is ToSucceeded and verdict.result is not None:
            size += len(verdict.result)
        if then:
            weight += len(then)
            size += bytes_of_jobs(then)
        if kv:
            size += _bytes_of_values(kv)
    return weight + size // bytes_each


def _bytes_of_values(kv: Mapping[bytes, bytes | None]) -> int:
    return sum([len(key) + len(value or b"") for key, value in kv.items()])
