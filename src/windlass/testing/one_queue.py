"""What one call may bring to a store that is not atomic over queues: all of it is of one queue."""

from collections.abc import Sequence

from windlass.core.job import PreparedJob

_OWN = "queue|"
"""How the name of a unique key begins that holds in its queue."""


def needs_more(jobs: Sequence[PreparedJob], queue: str) -> bool:
    """Whether these jobs cannot be enqueued by a step that touches `queue` alone."""
    return any(
        job.queue != queue or job.kv or (job.unique is not None and not job.unique.name.startswith(_OWN))
        for job in jobs
    )


def brought_into(jobs: Sequence[PreparedJob], queue: str) -> list[PreparedJob]:
    """Return these jobs as a step can enqueue them that touches `queue` alone."""
    return [_brought(job, queue) for job in jobs]


def _brought(job: PreparedJob, queue: str) -> PreparedJob:
    key = job.unique
    if key is not None:
        key = key._replace(name=f"{_OWN}{job.tenant or ''}|{queue}|{key.key}")
    return job._replace(queue=queue, kv={}, unique=key)
