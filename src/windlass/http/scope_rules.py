"""Rules of tokens that are limited to some queues: one for each call of a store.

A rule is of one of four kinds: it allows the call, refuses it, narrows it before the store executes it, or filters the
reply. A rule that needs more than one call of the store is a coroutine function. A call without a rule is refused.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from itertools import islice, takewhile
from typing import Any, Final, TypeAlias, TypeVar, cast

from windlass.core import commands, queries
from windlass.core.commands import COMMANDS, ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.ids import JobId
from windlass.core.job import Job, PreparedJob
from windlass.core.looks import DeadJob, Glance, JobPage, Place, ServerRecord
from windlass.core.queries import QUERIES
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.schedule import Fired, FireOutcome, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store import Store
from windlass.core.store_calls import Command, Entry, Query, StoreCall, check_tables, table_of
from windlass.http.refusal import refuse_beyond

C = TypeVar("C", bound=StoreCall[Any])
R = TypeVar("R")
Row = TypeVar("Row", QueueStats, KindStats, MinuteCounts, TimingCount)


@dataclass(frozen=True, slots=True)
class Scope:
    """The queues that a token is limited to, and the store behind, for one call."""

    queues: frozenset[str]
    store: Store
    request_id: str | None = None

    def execute(self, call: StoreCall[R]) -> Awaitable[R]:
        """Execute a call in the store, with the request id that the caller gave."""
        return cast("Awaitable[R]", self._reply_of(call))

    def _reply_of(self, call: StoreCall[Any]) -> Awaitable[Any]:
        match call:
            case EnqueueJobs(jobs):
                return self.store.enqueue(jobs, request_id=self.request_id)
            case ClaimJobs(request):
                return self.store.claim(request, request_id=self.request_id)
            case SettleClaims(settlements):
                return self.store.settle(settlements, request_id=self.request_id)
            case Command():
                return self.store.do(call, request_id=self.request_id)
            case Query():
                return self.store.ask(call)
            case _:
                message = f"{type(call).__name__} is neither a command nor a query: derive it from one of both"
                raise TypeError(message)

    def check_queues(self, queues: Iterable[str]) -> None:
        """Refuse a call that names another queue."""
        for queue in queues:
            if queue not in self.queues:
                refuse_beyond(f"queue {queue!r}")

    def check_jobs(self, jobs: Iterable[PreparedJob]) -> None:
        """Refuse jobs of other queues, and jobs that reach into what belongs to all queues."""
        for job in jobs:
            self.check_queues([job.queue])
            check_no_kv(job.kv)
            if job.unique is not None and not job.unique.name.startswith("queue|"):
                refuse_beyond("a unique key over several queues")

    def has_server(self, server: ServerRecord) -> bool:
        """Whether a server works on these queues alone."""
        return bool(server.queues) and self.queues.issuperset(server.queues)

    async def own_jobs(self, ids: Sequence[JobId]) -> list[JobId]:
        """Return which of these jobs are in the queues."""
        jobs = await self.store.get(ids)
        return [job.id for job in jobs if job is not None and job.queue in self.queues]

    async def is_foreign_schedule(self, schedule_id: str) -> bool:
        """Whether a schedule makes jobs in another queue."""
        _, found = await self.store.schedules([schedule_id])
        return any(schedule.queue not in self.queues for schedule in found)

    async def is_foreign_server(self, server_id: str) -> bool:
        """Whether a server works on another queue."""
        return any(each.id == server_id and not self.has_server(each) for each in await self.store.servers())


Rule: TypeAlias = Callable[[Scope, Any], Awaitable[Any]]


def allow(call: type[StoreCall[Any]]) -> Entry[Rule]:
    """Return the rule of a call that is executed unchanged."""
    return Entry(call, Scope.execute)


def refuse(call: type[StoreCall[Any]], what: str) -> Entry[Rule]:
    """Return the rule of a call that is about `what`, which belongs to all queues."""

    async def refused(scope: Scope, call: StoreCall[Any]) -> None:
        del scope, call
        refuse_beyond(what)

    return Entry(call, refused)


def narrow(call: type[C], narrowed: Callable[[Scope, C], C]) -> Entry[Rule]:
    """Return the rule of a call that is executed as `narrowed` returns it; `narrowed` may refuse it instead."""

    async def execute(scope: Scope, call: C) -> Any:  # noqa: ANN401 - the reply of any call
        return await scope.execute(narrowed(scope, call))

    return Entry(call, execute)


def allow_within(call: type[C], named: Callable[[C], Iterable[str]]) -> Entry[Rule]:
    """Return the rule of a call that is executed unchanged while the queues that it names are those of the token."""

    def checked(scope: Scope, call: C) -> C:
        scope.check_queues(named(call))
        return call

    return narrow(call, checked)


def filter_reply(call: type[Query[R]], kept: Callable[[Scope, R], R]) -> Entry[Rule]:
    """Return the rule of a query of whose reply `kept` returns what is of the queues."""

    async def execute(scope: Scope, query: Query[R]) -> R:
        return kept(scope, await scope.execute(query))

    return Entry(call, execute)


async def refuse_unruled(scope: Scope, call: StoreCall[Any]) -> None:
    """Refuse a call that has no rule."""
    del scope
    refuse_beyond(type(call).__name__)


def check_no_kv(kv: object) -> None:
    """Refuse writes to the key space, which belongs to all queues."""
    if kv:
        refuse_beyond("the kv space")


def _enqueue(scope: Scope, command: EnqueueJobs) -> EnqueueJobs:
    scope.check_jobs(command.jobs)
    return command


def _settle(scope: Scope, command: SettleClaims) -> SettleClaims:
    """Check what comes with settlements; their tokens can only come from a claim of these queues."""
    for settlement in command.settlements:
        scope.check_jobs(settlement.then)
        check_no_kv(settlement.kv)
    return command


def _rescue(scope: Scope, command: commands.RescueClaims) -> commands.RescueClaims:
    request = command.request
    if request.queues is None:
        request = request._replace(queues=sorted(scope.queues))
    scope.check_queues(request.queues or ())
    return replace(command, request=request)


def _jobs_by_id(scope: Scope, jobs: list[Job | None]) -> list[Job | None]:
    return [job if job is not None and job.queue in scope.queues else None for job in jobs]


def _rows(scope: Scope, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.queue in scope.queues]


def _servers(scope: Scope, servers: list[ServerRecord]) -> list[ServerRecord]:
    return [server for server in servers if scope.has_server(server)]


def _schedules(scope: Scope, found: ScheduleList) -> ScheduleList:
    return found._replace(schedules=[schedule for schedule in found.schedules if schedule.queue in scope.queues])


async def _no_servers(scope: Scope, query: queries.ListEndedServers) -> list[str]:
    """Return none: the server that rescues all queues removes them."""
    del scope, query
    return []


async def _none_stranded(scope: Scope, query: queries.CountStranded) -> int:
    """Return zero: they may be of other queues."""
    del scope, query
    return 0


async def _cancel(scope: Scope, command: commands.CancelJobs) -> list[CancelOutcome]:
    ours = await scope.own_jobs(command.ids)
    outcomes = await scope.execute(replace(command, ids=_only(command.ids, ours)))
    return _in_place(command.ids, ours, outcomes, CancelOutcome.NOT_FOUND)


async def _change(
    scope: Scope, command: commands.RetryJobs | commands.DeleteJobs | commands.RescheduleJobs
) -> list[Changed]:
    ours = await scope.own_jobs(command.ids)
    narrowed: Command[list[Changed]] = replace(command, ids=_only(command.ids, ours))
    changed = await scope.execute(narrowed)
    return _in_place(command.ids, ours, changed, Changed.NOT_FOUND)


async def _write_schedule(scope: Scope, command: commands.WriteSchedule) -> int | None:
    """Refuse a schedule of another queue, in place of which this one would be written.

    A last job that is in another queue is refused too: a firing shows whether that job has ended.
    """
    schedule = command.schedule
    scope.check_queues([schedule.queue])
    _, found = await scope.store.schedules([schedule.id])
    if any(each.queue not in scope.queues for each in found):
        refuse_beyond(f"schedule {schedule.id!r}")
    last = schedule.last_job_id
    if last is not None and last not in [each.last_job_id for each in found] and not await scope.own_jobs([last]):
        refuse_beyond(f"job {last}")
    return await scope.execute(command)


async def _remove_schedule(scope: Scope, command: commands.RemoveSchedule) -> bool:
    return not await scope.is_foreign_schedule(command.schedule_id) and await scope.execute(command)


async def _fire(scope: Scope, command: commands.FireSchedule) -> Fired:
    scope.check_jobs(command.firing.jobs)
    if await scope.is_foreign_schedule(command.firing.schedule_id):
        return Fired(FireOutcome.LOST)
    return await scope.execute(command)


async def _write_heartbeat(scope: Scope, command: commands.WriteHeartbeat) -> None:
    """Refuse a server of other queues, and one that declares their schedules: a schedule fires while it is declared."""
    server = command.server
    scope.check_queues(server.queues)
    if await scope.is_foreign_server(server.id):
        refuse_beyond(f"server {server.id}")
    for schedule_id in server.schedules:
        if await scope.is_foreign_schedule(schedule_id):
            refuse_beyond(f"schedule {schedule_id!r}")
    await scope.execute(command)


async def _remove_server(scope: Scope, command: commands.RemoveServer) -> None:
    if not await scope.is_foreign_server(command.server_id):
        await scope.execute(command)


async def _glance(scope: Scope, query: queries.GetGlances) -> dict[JobId, Glance]:
    return await scope.execute(replace(query, ids=await scope.own_jobs(list(query.ids))))


async def _jobs(scope: Scope, query: queries.ListJobs) -> list[Job]:
    if query.chosen.queue is not None:
        return await scope.execute(query) if query.chosen.queue in scope.queues else []
    pages = [
        await scope.execute(replace(query, chosen=replace(query.chosen, queue=queue))) for queue in sorted(scope.queues)
    ]
    return list(islice(merge(*pages, key=lambda job: job.seq), query.limit))


async def _newest(scope: Scope, query: queries.ListNewestJobs) -> JobPage:
    if query.chosen.queue is not None:
        return await scope.execute(query) if query.chosen.queue in scope.queues else JobPage([], None)
    # a share of `most` for each queue: a token with many queues costs the store no more than another one
    share = max(1, query.most // max(1, len(scope.queues)))
    pages = [
        await scope.execute(replace(query, chosen=replace(query.chosen, queue=queue), most=share))
        for queue in sorted(scope.queues)
    ]
    return merged(pages, query.limit)


async def _dead(scope: Scope, query: queries.ListDeadJobs) -> list[DeadJob]:
    queues = sorted(scope.queues) if query.queue is None else scope.queues.intersection({query.queue})
    pages = [await scope.execute(replace(query, queue=queue)) for queue in queues]
    return list(islice(merge(*pages, key=lambda dead: dead.death, reverse=True), query.limit))


async def _position(scope: Scope, query: queries.GetPosition) -> Place | None:
    """Return the position of a job of these queues, with the holder of its key where that is of these queues too."""
    if not await scope.own_jobs([query.job_id]):
        return None
    place = await scope.execute(query)
    if place is None or place.key_holder is None or await scope.own_jobs([place.key_holder]):
        return place
    return place._replace(key_holder=None)


async def _stats(scope: Scope, query: queries.GetStats) -> list[QueueStats]:
    if query.queue is not None and query.queue not in scope.queues:
        return []
    return _rows(scope, await scope.execute(query))


def merged(pages: Sequence[JobPage], limit: int) -> JobPage:
    """Return the newest of all pages, as far back as each of them has been looked at, and where to look on."""
    looked = max((page.next for page in pages if page.next is not None), default=None)
    found = merge(*(page.jobs for page in pages), key=lambda job: -job.seq)
    jobs = list(takewhile(lambda job: looked is None or job.seq >= looked, found))
    if len(jobs) > limit:
        return JobPage(jobs[:limit], jobs[limit - 1].seq)
    return JobPage(jobs, looked)


def _only(ids: Sequence[JobId], ours: Collection[JobId]) -> list[JobId]:
    return [each for each in ids if each in ours]


def _in_place(ids: Sequence[JobId], ours: Collection[JobId], replies: Iterable[R], absent: R) -> list[R]:
    """Return the replies about `ours` at the places of their ids, and `absent` at the others."""
    rest = iter(replies)
    return [next(rest, absent) if each in ours else absent for each in ids]


_refuse_move = partial(refuse, what="a move of the store")
_refuse_kv = partial(refuse, what="the kv space")

RULES: Final = table_of(
    narrow(EnqueueJobs, _enqueue),
    allow_within(ClaimJobs, lambda command: command.request.queues),
    narrow(SettleClaims, _settle),
    # a token of a claim is proof that the caller has claimed from these queues
    allow(commands.RenewClaims),
    allow(commands.WriteNotes),
    commands.CancelJobs.by_coroutine(_cancel),
    commands.RetryJobs.by_coroutine(_change),
    commands.DeleteJobs.by_coroutine(_change),
    commands.RescheduleJobs.by_coroutine(_change),
    allow_within(commands.SetQueueSettings, lambda command: [command.queue]),
    narrow(commands.RescueClaims, _rescue),
    refuse(commands.PromoteJobs, "promotion"),
    refuse(commands.PruneRecords, "pruning"),
    commands.WriteSchedule.by_coroutine(_write_schedule),
    commands.RemoveSchedule.by_coroutine(_remove_schedule),
    commands.FireSchedule.by_coroutine(_fire),
    _refuse_kv(commands.WriteKv),
    refuse(commands.TakeLock, "a lock"),
    refuse(commands.FreeLock, "a lock"),
    commands.WriteHeartbeat.by_coroutine(_write_heartbeat),
    commands.RemoveServer.by_coroutine(_remove_server),
    allow_within(commands.WriteTimings, lambda command: {row.queue for row in command.timings}),
    allow(commands.WriteAudit),
    _refuse_move(commands.SetMoved),
    _refuse_move(commands.UnpackJobs),
    _refuse_move(commands.DeleteMoved),
    _refuse_move(commands.TakeKeys),
    filter_reply(queries.GetJobs, _jobs_by_id),
    queries.GetGlances.by_coroutine(_glance),
    queries.ListJobs.by_coroutine(_jobs),
    queries.ListNewestJobs.by_coroutine(_newest),
    queries.ListDeadJobs.by_coroutine(_dead),
    queries.GetPosition.by_coroutine(_position),
    allow_within(queries.GetDueTime, lambda query: query.queues),
    queries.GetStats.by_coroutine(_stats),
    allow_within(queries.GetQueueSettings, lambda query: query.queues),
    allow_within(queries.ListKinds, lambda query: [query.queue]),
    filter_reply(queries.CountWaiting, _rows),
    filter_reply(queries.GetMinutes, _rows),
    filter_reply(queries.GetTimings, _rows),
    filter_reply(queries.ListServers, _servers),
    queries.ListEndedServers.by_coroutine(_no_servers),
    filter_reply(queries.ListSchedules, _schedules),
    refuse(queries.ListDueSchedules, "a look at all due schedules"),
    refuse(queries.ListAudit, "the audit"),
    queries.CountStranded.by_coroutine(_none_stranded),
    refuse(queries.CheckStore, "a check of the store"),
    _refuse_kv(queries.GetKv),
    _refuse_kv(queries.ScanKv),
    # every client is told where the jobs went, by the error of its next enqueue
    allow(queries.GetMoved),
    _refuse_move(queries.PackJobs),
    _refuse_move(queries.GetUnpacked),
    _refuse_move(queries.ListTimedKeys),
)
"""The rule of each call."""

check_tables((EnqueueJobs, ClaimJobs, SettleClaims, *COMMANDS, *QUERIES), RULES)
