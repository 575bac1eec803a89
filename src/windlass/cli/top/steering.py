"""What the keys change: each asks first, and each is written into the audit."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from windlass.cli.audited import write_down, write_down_jobs
from windlass.client.client import Client
from windlass.client.spoken import counted
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.states import State
from windlass.core.stats import QueueStats


@dataclass(frozen=True, slots=True)
class Change:
    """Something that can be done: what is asked first, and how it is done; that returns what it was."""

    question: str
    do: Callable[[], Awaitable[str]]


class Steering:
    """Makes changes, in somebody's name."""

    def __init__(self, client: Client, actor: str) -> None:
        """Change through `client`, as `actor`."""
        self._client = client
        self._actor = actor

    def pause(self, queue: QueueStats) -> Change:
        """Pause a queue, or resume one that is paused."""
        name = queue.queue or ""
        if queue.paused:
            return Change(
                f"Resume queue {name}? In line: {counted(queue.pending, 'job')}.",
                lambda: self._set_paused(name, paused=False),
            )
        return Change(
            f"Pause queue {name}? No job of it is claimed until it is resumed; what runs goes on.",
            lambda: self._set_paused(name, paused=True),
        )

    def retry(self, jobs: Sequence[Job]) -> Change | str:
        """Retry jobs; or say why there is nothing to retry."""
        chosen = [job for job in jobs if job.state in (State.DEAD, State.CANCELLED)]
        if not chosen:
            return _not_now(jobs, "retried", "dead or cancelled")
        return Change(
            f"Retry {_named(chosen)}? A full new budget of attempts, pending now.", lambda: self._retry(chosen)
        )

    def delete(self, jobs: Sequence[Job]) -> Change | str:
        """Delete jobs; or say why there is nothing to delete."""
        chosen = [job for job in jobs if job.state.finished]
        if not chosen:
            return _not_now(jobs, "deleted", "finished: cancel it first")
        return Change(f"Delete {_named(chosen)}? The record is gone for good.", lambda: self._delete(chosen))

    def cancel(self, job: Job) -> Change | str:
        """Cancel a job; or say why that cannot be."""
        if job.state.finished:
            return _not_now([job], "cancelled", "waiting or running")
        then = "its code is told to stop" if job.state is State.RUNNING else "it will not run"
        return Change(f"Cancel {_named([job])}? It is {job.state}: {then}.", lambda: self._cancel(job.id))

    async def _set_paused(self, queue: str, *, paused: bool) -> str:
        await (self._client.pause(queue) if paused else self._client.resume(queue))
        await write_down(self._client, self._actor, "pause" if paused else "resume", queue)
        return f"queue {queue} is {'paused' if paused else 'resumed'}"

    async def _retry(self, jobs: Sequence[Job]) -> str:
        ids = [job.id for job in jobs]
        changed = await self._client.store.retry(ids)
        return await self._told("retry", "in line again", ids, changed)

    async def _delete(self, jobs: Sequence[Job]) -> str:
        ids = [job.id for job in jobs]
        changed = await self._client.store.delete(ids)
        return await self._told("delete", "deleted", ids, changed)

    async def _told(self, action: str, done: str, ids: Sequence[JobId], changed: Sequence[Changed]) -> str:
        good = [job_id for job_id, each in zip(ids, changed, strict=True) if each is Changed.DONE]
        await write_down_jobs(self._client, self._actor, action, good, {"by": "top"})
        held = sum(each is Changed.KEY_HELD for each in changed)
        left = len(ids) - len(good) - held
        said = [f"{counted(len(good), 'job')} {done}"]
        said += [f"{held:,} left out: another live job holds the unique key"] if held else []
        said += [f"{left:,} left out: gone, or in another state by now"] if left else []
        return "; ".join(said)

    async def _cancel(self, job_id: JobId) -> str:
        outcome = await self._client.cancel(job_id)
        if outcome is CancelOutcome.NOT_FOUND:
            return "it had ended before it could be cancelled"
        await write_down(self._client, self._actor, "cancel", job_id, {"by": "top"})
        return "cancelled" if outcome is CancelOutcome.REMOVED else "its holder is told to stop"


def _named(jobs: Sequence[Job]) -> str:
    if len(jobs) == 1:
        return f"job {jobs[0].id} ({jobs[0].kind or 'raw'} in {jobs[0].queue})"
    return f"these {counted(len(jobs), 'job')} ({jobs[0].kind or 'raw'} in {jobs[0].queue})"


def _not_now(jobs: Sequence[Job], done: str, needed: str) -> str:
    if not jobs:
        return "choose a job first: tab goes to the table of jobs"
    return f"job {jobs[0].id} is {jobs[0].state}: only one can be {done} that is {needed}"
