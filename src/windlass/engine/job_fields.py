"""Fields of a job on a log record: attributes for log handlers, and the same in one mapping, `record.windlass`."""

from typing import Any

from windlass.core.job import Job


def job_facts(job: Job) -> dict[str, Any]:
    """Return which job and which delivery a record is about."""
    return {
        "job_id": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "attempt": job.attempt,
        "delivery": job.delivery,
        "worker": job.worker,
        "tenant": job.tenant,
    }


def fields_of(job: Job, **more: object) -> dict[str, Any]:
    """Return the `extra` of a record about one job: each fact is an attribute, and all are in `windlass`."""
    return record_fields({**job_facts(job), **more})


def record_fields(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the `extra` of a record that says these facts."""
    return {**facts, "windlass": facts}
