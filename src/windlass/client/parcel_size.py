"""How much of what is packed goes over in one parcel."""

from typing import Final

from windlass.core.job import Job
from windlass.core.moving import Packed

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of the jobs in one parcel, but one at least: both stores and whoever carries it have to hold it."""


def fitting(packed: Packed) -> Packed:
    """Return as many of the first jobs as one parcel has room for, and their keys."""
    room = MOST_BYTES
    for number, job in enumerate(packed.jobs):
        room -= size_of(job)
        if room < 0 and number:
            jobs = packed.jobs[:number]
            ids = {each.id for each in jobs}
            return Packed(jobs, [key for key in packed.keys if key.job_id in ids])
    return packed


def size_of(job: Job) -> int:
    """Return about how many bytes a job has, with its history and its log."""
    texts = [text for line in job.log for text in (line.level, line.text)]
    failures = [ended.failure for ended in job.history if ended.failure is not None]
    texts += [text or "" for failure in failures for text in failure]
    texts += [text for header in job.headers.items() for text in header]
    return len(job.payload) + len(job.result or b"") + sum(map(len, texts))
