"""Calls that need a look at the queues: each function executes one. `windlass.kit.moves` executes all others."""

from datetime import datetime, timedelta
from typing import Final

from examples.dictionary_store.table import DictionaryState, Queue
from windlass.core import commands, queries
from windlass.core.duration import ZERO
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Finding, JobPage, Place, death_of
from windlass.core.moving import Packed
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.requests import Claimed, Rescued
from windlass.core.states import ENDS, WAITING, State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, Totals
from windlass.core.store_calls import check_tables, table_of
from windlass.core.topics import PAUSES
from windlass.kit.moves import claiming, looking, moving, steering
from windlass.kit.moves import commands as shared_commands
from windlass.kit.moves import queries as shared_queries
from windlass.kit.moves.record import Record


def urgency(record: Record) -> tuple[int, datetime, int]:
    """Return what sorts the jobs of a line."""
    return record.priority, record.run_at, record.seq


def claim(state: DictionaryState, command: commands.ClaimJobs) -> Claimed:
    table, request = state.table, command.request
    names = [name for name in dict.fromkeys(request.queues) if name in table.queues and not table.queues[name].paused]
    for record in due_records(state, names):
        table.starts_waiting(record, State.PENDING, state.now, ring=False)
    lines = [names] if request.by_priority else [[name] for name in names]
    ready = [
        record
        for line in lines
        for record in sorted(table.records(State.PENDING, queues=line), key=urgency)
        if request.kinds is None or record.kind in request.kinds
    ]
    return Claimed(claiming.claim(table, ready[: request.limit], request, state.rng, state.now))


def due_records(state: DictionaryState, queues: list[str] | None = None) -> list[Record]:
    """Return the scheduled jobs that have come due."""
    return [record for record in state.table.records(State.SCHEDULED, queues=queues) if record.run_at <= state.now]


def promote(state: DictionaryState, command: commands.PromoteJobs) -> int:
    due = due_records(state)[: command.limit]
    for record in due:
        state.table.starts_waiting(record, State.PENDING, state.now)
    return len(due)


def rescue(state: DictionaryState, command: commands.RescueClaims) -> list[Rescued]:
    request = command.request
    lost = [
        record
        for record in state.table.records(State.RUNNING, queues=request.queues)
        if (request.force or lease_is_over(record, state.now))
        and (request.workers is None or record.worker in request.workers)
    ]
    return [
        steering.rescue(state.table, record, request, command.retention, state.now) for record in lost[: request.limit]
    ]


def lease_is_over(record: Record, now: datetime) -> bool:
    return record.lease_expires_at is not None and record.lease_expires_at <= now


def prune(state: DictionaryState, command: commands.PruneRecords) -> int:
    queues = state.table.queues.values()
    state.house.prune(state.table.holds, [queue.tally for queue in queues], state.now)
    over = [record for queue in queues for end in ENDS for record in past_retention(state, command, queue, end)]
    for record in over[: command.limit]:
        state.table.remove(record)
    return len(over[: command.limit])


def past_retention(state: DictionaryState, command: commands.PruneRecords, queue: Queue, end: State) -> list[Record]:
    """Return the records of a queue and an end that are to go, the oldest first."""
    dated = [(record.finished_at or state.now, record) for record in state.table.records(end, queues=[queue.name])]
    dated.sort(key=lambda each: (each[0], each[1].seq))
    return [
        record
        for place, (finished_at, record) in enumerate(dated)
        if steering.past_retention(
            finished_at, len(dated) - place, queue=queue.name, state=end, retention=command.retention, now=state.now
        )
    ]


def set_queue_settings(state: DictionaryState, command: commands.SetQueueSettings) -> None:
    queue = state.table.queue(command.queue)
    queue.settings = queue.settings.changed(command.settings, command.layer)
    if command.settings.paused is not None:
        state.table.news.add(PAUSES if command.settings.paused else queue.topic)


def list_jobs(state: DictionaryState, query: queries.ListJobs) -> list[Job]:
    records = [record for record in state.table.jobs.values() if query.after is None or record.seq > query.after]
    return [record.job() for record in records if looking.matches(record, query.chosen)][: query.limit]


def list_newest_jobs(state: DictionaryState, query: queries.ListNewestJobs) -> JobPage:
    records = [record for record in state.table.jobs.values() if query.before is None or record.seq < query.before]
    page: list[Job] = []
    for place, record in enumerate(reversed(records)):
        if place == query.most or len(page) == query.limit:
            return JobPage(page, record.seq + 1)
        if looking.matches(record, query.chosen):
            page.append(record.job())
    return JobPage(page, None)


def list_dead_jobs(state: DictionaryState, query: queries.ListDeadJobs) -> list[DeadJob]:
    queues = None if query.queue is None else [query.queue]
    jobs = [record.job() for record in state.table.records(State.DEAD, queues=queues)]
    dead = sorted((DeadJob(death_of(job), job) for job in jobs), key=lambda each: each.death, reverse=True)
    return [each for each in dead if query.before is None or each.death < query.before][: query.limit]


def get_position(state: DictionaryState, query: queries.GetPosition) -> Place | None:
    record = state.table.jobs.get(query.job_id)
    if record is None:
        return None
    ahead = None
    if record.state is State.PENDING:
        line = state.table.records(State.PENDING, queues=[record.queue])
        ahead = min(sum(urgency(other) < urgency(record) for other in line), looking.AHEAD_MOST)
    holder = None if record.hold is None else state.table.holds.holder(record.hold.name, state.now)
    return Place(state.now, ahead, None if holder is None else holder.job_id)


def get_due_time(state: DictionaryState, query: queries.GetDueTime) -> timedelta | None:
    names = [name for name in query.queues if name in state.table.queues and not state.table.queues[name].paused]
    scheduled = state.table.records(State.SCHEDULED, queues=names)
    return min((max(ZERO, record.run_at - state.now) for record in scheduled), default=None)


def get_stats(state: DictionaryState, query: queries.GetStats) -> list[QueueStats]:
    known = state.table.queues
    return [stats_of(state, known[name]) for name in sorted(known) if query.queue in {None, name}]


def stats_of(state: DictionaryState, queue: Queue) -> QueueStats:
    counts = {str(each): len(state.table.records(each, queues=[queue.name])) for each in State}
    waiting = [record.run_at for record in state.table.records(State.PENDING, queues=[queue.name])]
    oldest, totals = min(waiting, default=None), Totals(*queue.tally.totals)
    return QueueStats(queue.name, queue.paused, **counts, oldest_waiting=oldest, totals=totals)


def get_queue_settings(state: DictionaryState, query: queries.GetQueueSettings) -> dict[str, StoredSettings]:
    known = state.table.queues
    found = {name: known[name].settings.settings for name in query.queues if name in known}
    return {name: settings for name, settings in found.items() if settings != NO_SETTINGS}


def list_kinds(state: DictionaryState, query: queries.ListKinds) -> list[str]:
    kinds = {record.kind for record in state.table.records(State.PENDING, queues=[query.queue])}
    return sorted(kind for kind in kinds if kind is not None and kind not in query.known)


def count_waiting(state: DictionaryState, _query: queries.CountWaiting) -> list[KindStats]:
    waiting: dict[tuple[str, str], list[datetime]] = {}
    for record in state.table.records(State.PENDING):
        waiting.setdefault((record.queue, record.kind or ""), []).append(record.run_at)
    return [KindStats(queue, kind, len(times), min(times)) for (queue, kind), times in sorted(waiting.items())]


def get_minutes(state: DictionaryState, query: queries.GetMinutes) -> list[MinuteCounts]:
    return sorted(
        MinuteCounts(minute, queue.name, kind, Totals(*row))
        for queue in state.table.queues.values()
        for (minute, kind), row in queue.tally.minutes.items()
        if query.since <= minute < query.until
    )


def list_ended_servers(_state: DictionaryState, _query: queries.ListEndedServers) -> list[str]:
    return []


def count_stranded(state: DictionaryState, query: queries.CountStranded) -> int:
    if state.house.alive(query.dead_after, state.now):
        return 0
    over = sum(lease_is_over(record, state.now) for record in state.table.records(State.RUNNING))
    return min(over, looking.STRANDED_MOST)


def check_store(state: DictionaryState, _query: queries.CheckStore) -> list[Finding]:
    said = f"{len(state.table.jobs):,} jobs in dictionaries: they end with the process"
    return [Finding("jobs", "ok", said), *looking.of_move(state.house.moved)]


def pack(state: DictionaryState, query: queries.PackJobs) -> Packed:
    waiting = state.table.records(*WAITING, queues=[query.queue])
    return moving.pack(state.table.holds, waiting[: query.limit], state.now)


STEPS: Final = {
    **shared_commands.COMMANDS,
    **table_of(
        commands.EnqueueJobs.by(shared_commands.enqueue),
        commands.ClaimJobs.by(claim),
        commands.SettleClaims.by(shared_commands.settle),
        commands.SetQueueSettings.by(set_queue_settings),
        commands.RescueClaims.by(rescue),
        commands.PromoteJobs.by(promote),
        commands.PruneRecords.by(prune),
    ),
}
check_tables([*commands.COMMANDS, commands.EnqueueJobs, commands.ClaimJobs, commands.SettleClaims], STEPS)

READS: Final = {
    **shared_queries.QUERIES,
    **table_of(
        queries.ListJobs.by(list_jobs),
        queries.ListNewestJobs.by(list_newest_jobs),
        queries.ListDeadJobs.by(list_dead_jobs),
        queries.GetPosition.by(get_position),
        queries.GetDueTime.by(get_due_time),
        queries.GetStats.by(get_stats),
        queries.GetQueueSettings.by(get_queue_settings),
        queries.ListKinds.by(list_kinds),
        queries.CountWaiting.by(count_waiting),
        queries.GetMinutes.by(get_minutes),
        queries.ListEndedServers.by(list_ended_servers),
        queries.CountStranded.by(count_stranded),
        queries.CheckStore.by(check_store),
        queries.PackJobs.by(pack),
    ),
}
check_tables(queries.QUERIES, READS)
