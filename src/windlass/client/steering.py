"""The operator's half of the client: looking at jobs and queues, and changing their course."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from windlass.client.claims import DEAD_AFTER
from windlass.client.listing import Listing
from windlass.client.operations import DELETE, REQUEUE, RETRY, Operation, by_filter, by_id, require, reschedule
from windlass.client.upkeep import promote_all, prune_all, rescue_all
from windlass.client.why import Why
from windlass.client.why import why as look_why
from windlass.core.duration import Duration, duration, moment
from windlass.core.errors import InvalidValue, JobNotFound
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId, job_id
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Death, death_of
from windlass.core.names import check_limit, check_name
from windlass.core.requests import RescueRequest
from windlass.core.retention import Keep, Retention
from windlass.core.settings import UNSET, Settings, Unset
from windlass.core.stats import QueueStats, total
from windlass.core.store import Store

Id = UUID | str
Kept = Duration | Unset | None


class Steering(ABC):
    """What an operator asks of a store."""

    def __init__(self, settings: Settings) -> None:
        """Rescue and prune by the retention in `settings`."""
        self._settings = settings
        self._retention = settings.retention

    @abstractmethod
    async def _reach(self) -> Store:
        """Return the open store; raises `ClientClosed` after the close."""

    async def get(self, id: Id) -> Job | None:
        """Return a job with its history and log, or None."""
        chosen = job_id(id)
        [job] = await (await self._reach()).get((chosen,))
        return job

    async def why(self, id: Id, *, dead_after: Duration = DEAD_AFTER) -> Why:
        """Tell why a job has not run, where it is, or how it ended: the reasons, the most decisive first.

        The same for one that is not here. A server that was not seen for `dead_after` counts as gone.
        """
        wanted = job_id(id)
        gone = duration(dead_after, "dead_after")
        return await look_why(await self._reach(), wanted, dead_after=gone)

    def jobs(
        self, chosen: JobFilter | None = None, *, after: Job | Id | None = None, limit: int | None = None
    ) -> Listing[Job]:
        """List the jobs that match, in the order of their enqueue, those past the job `after`; at most `limit`."""
        checked = JobFilter() if chosen is None else checked_filter(chosen)
        past = after if after is None or isinstance(after, Job) else job_id(after)

        async def read(last: int | None, size: int) -> Sequence[tuple[int, Job]]:
            store = await self._reach()
            begin = await _seq(store, past) if last is None else last
            return [(job.seq, job) for job in await store.jobs(checked, after=begin, limit=size)]

        return Listing(read, limit)

    def dead_jobs(
        self, queue: str | None = None, *, after: Job | Id | None = None, limit: int | None = None
    ) -> Listing[Job]:
        """List the dead jobs of a queue or of all, the last to die first, those past the job `after`; at most `limit`.

        Jobs that died at the same time come by sequence number, the greatest first. `after` is a `Job` as it was
        listed, which need not be there any more, or the id of a job that is dead.
        """
        name = None if queue is None else check_name(queue, "queue")
        past = after if after is None or isinstance(after, Job) else job_id(after)

        async def read(last: Death | None, size: int) -> Sequence[DeadJob]:
            store = await self._reach()
            begin = await _death(store, past) if last is None else last
            return await store.dead(name, before=begin, limit=size)

        return Listing(read, limit)

    async def retry(self, chosen: Id | JobFilter) -> int:
        """Give dead and cancelled jobs a full new budget, pending now; return how many.

        By id it raises `JobNotFound`, `WrongState`, or `UniqueConflict` when another live job holds its key. By filter
        such jobs are left out; it works in chunks of 1,000, each a step of its own.
        """
        return await self._operate(RETRY, chosen)

    async def requeue_dead(self, id: Id) -> None:
        """Give one dead job a full new budget, as `retry`; a cancelled one is `WrongState`."""
        wanted = job_id(id)
        store = await self._reach()
        await require(store, REQUEUE, wanted)
        await by_id(store, REQUEUE, wanted)

    async def delete(self, chosen: Id | JobFilter) -> int:
        """Delete finished jobs; return how many. By id `JobNotFound` or `WrongState`, by filter others are left out."""
        return await self._operate(DELETE, chosen)

    async def reschedule(self, id: Id, run_at: datetime) -> None:
        """Let a waiting job run at `run_at`, or now when that is past; raises `JobNotFound` or `WrongState`."""
        at = moment(run_at, "run_at")
        await self._operate(reschedule(at), id)

    async def run_now(self, id: Id) -> None:
        """Let a waiting job run now; raises `JobNotFound` or `WrongState`."""
        await self._operate(reschedule(None), id)

    async def stats(self, queue: str | None = None) -> QueueStats:
        """Count the jobs of a queue by state, exactly; without a queue, the sum over all."""
        if queue is None:
            return total(await (await self._reach()).stats())
        rows = await (await self._reach()).stats(check_name(queue, "queue"))
        return rows[0] if rows else QueueStats(queue)

    async def stats_by_queue(self) -> list[QueueStats]:
        """Count the jobs of each queue by state, exactly, in order of name."""
        return await (await self._reach()).stats()

    async def queues(self) -> list[str]:
        """Return the names of all queues that ever had a job or a pause."""
        rows = await (await self._reach()).stats()
        return [row.queue for row in rows if row.queue is not None]

    async def pause(self, queue: str) -> None:
        """Give no claim from `queue`, to anybody, from the return of this call on; it need not exist yet."""
        check_name(queue, "queue")
        await (await self._reach()).set_paused(queue, paused=True)

    async def resume(self, queue: str) -> None:
        """Give claims from `queue` again, and wake those who wait for one."""
        check_name(queue, "queue")
        await (await self._reach()).set_paused(queue, paused=False)

    async def rescue(
        self,
        queues: str | Sequence[str] | None = None,
        *,
        servers: str | Sequence[str] | None = None,
        force: bool = False,
        to: Literal["retry", "dead"] = "retry",
    ) -> int:
        """Take back expired claims once, now; return how many.

        `servers` are the ids of servers, `name#uuid`, whose machines have ended: all their claims are taken back, also
        those whose lease still holds. `force=True` takes every claim of these queues, also live ones, and `to="dead"`
        ends the jobs as orphans: for an operator who knows that no process holds them any more.
        """
        names = None if queues is None else checked_queues(queues)
        ended = None if servers is None else _checked_servers(servers)
        if to not in ("retry", "dead"):
            message = f"to is 'retry' or 'dead', not {to!r}"
            raise InvalidValue(message)
        store = await self._reach()
        if names == [] or ended == []:
            return 0
        request = RescueRequest(names, ended, force=force or ended is not None, to=to)
        return len(await rescue_all(store, request, self._retention))

    async def promote(self) -> int:
        """Make every scheduled job that has come due pending; return how many. A claim does so by itself."""
        return await promote_all(await self._reach())

    async def prune(
        self,
        *,
        keep_succeeded: Kept = UNSET,
        keep_dead: Kept = UNSET,
        keep_cancelled: Kept = UNSET,
        keep_max: int | None = None,
    ) -> int:
        """Delete finished jobs past their retention once, now; return how many.

        What is not given is as in this client's settings, by queue; what is given holds for all queues.
        """
        wanted = _Kept(keep_succeeded, keep_dead, keep_cancelled)
        most = None if keep_max is None else check_limit(keep_max)
        return await prune_all(await self._reach(), wanted.over(self._retention, most))

    async def _operate(self, operation: Operation, chosen: Id | JobFilter) -> int:
        if isinstance(chosen, JobFilter):
            return await by_filter(await self._reach(), operation, chosen)
        wanted = job_id(chosen)
        await by_id(await self._reach(), operation, wanted)
        return 1


class _Kept:
    """What a caller of `prune` wants to keep, over what the settings say."""

    def __init__(self, succeeded: Kept, dead: Kept, cancelled: Kept) -> None:
        self._given = {
            what: None if value is None else duration(value, f"keep_{what}")
            for what, value in (("succeeded", succeeded), ("dead", dead), ("cancelled", cancelled))
            if not isinstance(value, Unset)
        }

    def over(self, base: Retention, most: int | None) -> Retention:
        queues = {queue: self._keep(keep) for queue, keep in base.queues.items()}
        return Retention(self._keep(base.default), queues, base.most if most is None else most)

    def _keep(self, base: Keep) -> Keep:
        return Keep(
            self._given.get("succeeded", base.succeeded),
            self._given.get("dead", base.dead),
            self._given.get("cancelled", base.cancelled),
        )


def checked_queues(queues: str | Sequence[str]) -> list[str]:
    """Return the names of one or several queues."""
    names = (queues,) if isinstance(queues, str) else queues
    if not isinstance(names, (list, tuple)):
        # an order is promised, which a set does not have
        message = f"queues are a name or a list of names, not {type(queues).__name__}"
        raise InvalidValue(message)
    return [check_name(queue, "queue") for queue in names]


def _checked_servers(servers: str | Sequence[str]) -> list[str]:
    ids = (servers,) if isinstance(servers, str) else servers
    if not isinstance(ids, (list, tuple)):
        message = f"servers are an id or a list of ids, not {type(servers).__name__}"
        raise InvalidValue(message)
    return [check_name(each, "server") for each in ids]


def checked_filter(chosen: object) -> JobFilter:
    """Return what jobs are chosen by, if it is a filter."""
    if isinstance(chosen, JobFilter):
        return chosen
    message = f"jobs are chosen by a JobFilter, not {type(chosen).__name__}"
    raise InvalidValue(message)


async def _death(store: Store, after: Job | JobId | None) -> Death | None:
    if after is None:
        return None
    return death_of(after if isinstance(after, Job) else await _job(store, after))


async def _seq(store: Store, after: Job | JobId | None) -> int | None:
    if after is None:
        return None
    return after.seq if isinstance(after, Job) else (await _job(store, after)).seq


async def _job(store: Store, wanted: JobId) -> Job:
    [job] = await store.get((wanted,))
    if job is None:
        raise JobNotFound(wanted)
    return job
