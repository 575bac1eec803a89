"""Jobs as callers send them become jobs as stores take them."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, UnsetType, ValidationError

from windlass.api.jobs import NewJob, is_json
from windlass.api.roles import Role
from windlass.client.prepare import Preparer
from windlass.codec import Encoded
from windlass.core import job as core
from windlass.core.errors import DecodeError, NotAllowed
from windlass.core.ids import JobId, job_id
from windlass.core.names import check_name
from windlass.http.asked import unfit
from windlass.http.auth import Identity


def prepared_jobs(preparer: Preparer, jobs: Sequence[NewJob], parent_id: JobId | None = None) -> list[core.PreparedJob]:
    """Return all of `jobs` in their order, or raise for the first that cannot be enqueued.

    What is left out is taken from the settings of the serving side; `parent_id` is that of those that name none.
    """
    made = preparer.prepare([new_job(job) for job in jobs], parent_id)
    return [_completed(one, asked) for one, asked in zip(made, jobs, strict=True)]


def check_origin(identity: Identity, jobs: Iterable[core.PreparedJob], **own: str) -> None:
    """Refuse jobs that claim another origin than their `own`, which is given by the names of `ORIGIN_FIELDS`.

    By these fields a job is counted to another job, schedule or limit, which may be out of reach. An administrator of
    all queues may set them.
    """
    if Role.ADMIN in identity.roles and identity.queues is None:
        return
    for job in jobs:
        for name in core.ORIGIN_FIELDS:
            _check_field(name, getattr(job, name), own.get(name))


def _check_field(name: str, value: str | None, own: str | None) -> None:
    if value is None or value == own:
        return
    advice = "leave it out" if own is None else f"leave it out, or give {own}"
    message = f"this token may not set {name} of a job to {value}: {advice}, or use a token with the role admin"
    raise NotAllowed(message)


def new_job(job: NewJob) -> core.NewJob:
    """Return a job as the client takes it."""
    try:
        data, codec = job.carried()
    except ValidationError as error:
        raise unfit(error) from None
    if not isinstance(job.payload, UnsetType) and not is_json(data):
        message = "payload is no JSON that every reader understands, such as one with a number out of all range"
        raise DecodeError(message, "$.payload")
    written = job.writes()
    kv = None if written is None else as_given(written)
    payload = Encoded(data, check_name(codec, "codec"))
    return core.NewJob(
        job.queue, payload, job.id, job.kind, job.priority, job.run_at, job.delay, job.max_attempts, job.wanted_key(),
        job.headers, job.tenant, kv,
    )  # fmt: skip


def as_given(kv: Mapping[bytes, bytes | None]) -> dict[bytes | str, bytes | None]:
    """Return kv writes as a caller of the client gives them."""
    return dict(kv.items())


def _completed(made: core.PreparedJob, asked: NewJob) -> core.PreparedJob:
    if asked.parent_id is UNSET and asked.schedule_id is None and asked.limit_key is None:
        return made
    return made._replace(
        parent_id=made.parent_id if isinstance(asked.parent_id, UnsetType) else _id(asked.parent_id),
        schedule_id=None if asked.schedule_id is None else check_name(asked.schedule_id, "schedule id"),
        limit_key=None if asked.limit_key is None else check_name(asked.limit_key, "limit key"),
    )


def _id(text: str | None) -> JobId | None:
    return None if text is None else job_id(text)
