"""One job: where it stands and why, what it carries, what it went through."""

from collections.abc import Sequence
from typing import ClassVar, Final

from windlass.api.operations import JOB
from windlass.api.shape import Asked
from windlass.client.look_back import LOOKED_AT
from windlass.client.why.known import Reason
from windlass.client.why.look import why
from windlass.config.hidden import hidden_headers
from windlass.core.errors import JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.job import Job, LogLine
from windlass.core.names import shortened
from windlass.handlers.secret_paths import HEADER
from windlass.http.dashboard.carried_text import payload_text, result_text, without_carried
from windlass.http.dashboard.delivery_shown import shown_delivery
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View
from windlass.http.job_pages import size_of

CHILDREN: Final = 100
LINES: Final = 200
"""How many of the newest lines of its log are shown."""
LINE: Final = 1_000
"""Characters of a line of its log."""
HEADER_SHOWN: Final = 300
"""Characters of a header."""
REASONS_KEPT: Final = 10.0
"""Seconds: reasons say how long ago things were, and need several looks."""
CHILDREN_KEPT: Final = 5.0
CARRIED_KEPT: Final = 60.0
"""Seconds."""


class JobAsked(Asked, kw_only=True):
    """Nothing but the job that the path names."""


class OneJob(View[JobAsked]):
    """All of one job."""

    name: ClassVar = "job"
    title: ClassVar = "Job"
    path: ClassVar = "/jobs/{id:uuid}"
    roles: ClassVar = JOB.roles
    asks = JobAsked
    regions: ClassVar = ("standing", "reasons", "timeline", "log", "carried", "facts")

    async def look(self, seen: Seen, asked: JobAsked) -> Facts:
        """Return all of it; raises `JobNotFound` for one that is not here, or not for whoever looks."""
        del asked
        job = await _job(seen)
        return {
            **await _carried(seen, job),
            "job": job,
            "reasons": await _reasons(seen, job),
            "children": await _children(seen, job),
            "most_children": CHILDREN,
            "headers": _headers(job),
            "deliveries": [shown_delivery(each) for each in reversed(job.history)],
            "lines": [_short(line) for line in job.log[-LINES:]],
            "more_lines": max(0, len(job.log) - LINES),
        }


async def _job(seen: Seen) -> Job:
    assert seen.job_id is not None  # noqa: S101 - its path names one
    [job] = await seen.store.get((seen.job_id,))
    if job is None:
        raise JobNotFound(seen.job_id)
    return job


async def _reasons(seen: Seen, job: Job) -> Sequence[Reason] | None:
    """Return why the job stands where it stands; None for those who see only some of what it hangs on."""
    looker = seen.looker
    if looker.queues is not None or not looker.may("why"):
        return None
    audit = looker.may("audit")
    paused = any(row.paused for row in await seen.queues() if row.queue == job.queue)
    stands = (job.id, job.state, job.attempt, job.delivery, job.cancel_requested, job.run_at, paused)
    found = await seen.kept.within(REASONS_KEPT, ("why", audit, stands), lambda: why(seen.store, job.id, audit=audit))
    return found.reasons


async def _children(seen: Seen, job: Job) -> Sequence[Job]:
    if not seen.looker.may("newest"):
        return ()

    async def ask() -> Sequence[Job]:
        page = await seen.store.newest(JobFilter(parent_id=job.id), before=None, limit=CHILDREN + 1, most=LOOKED_AT)
        return [without_carried(child) for child in page.jobs]

    return await seen.kept.within(CHILDREN_KEPT, ("children", seen.looker.queues, job.id), ask)


async def _carried(seen: Seen, job: Job) -> Facts:
    """Return what a job carries and what it returned, written once for a while: it may be large."""
    payload, result = job.payload, job.result
    what = (job.id, job.codec, hash(payload), hash(result), job.headers.get(HEADER))

    async def write() -> Facts:
        return await seen.reading.work(size_of(job), lambda: {"payload": payload_text(job), "result": result_text(job)})

    return await seen.kept.within(CARRIED_KEPT, ("carried", seen.looker.queues, what), write)


def _headers(job: Job) -> dict[str, str]:
    """Return the headers of a job, but for the one that names what is hidden: it reads as if it were a secret."""
    shown = hidden_headers(job.headers)
    return {name: shortened(value, HEADER_SHOWN) for name, value in shown.items() if name != HEADER}


def _short(line: LogLine) -> LogLine:
    return line._replace(text=shortened(line.text, LINE))
