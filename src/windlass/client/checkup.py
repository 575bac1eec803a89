"""What `doctor` looks at in every store: it only looks, so that a dashboard may show the same."""

import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from windlass.client.claims import DEAD_AFTER
from windlass.client.server_details import is_live, is_stopping, stuck_in
from windlass.client.spoken import at_utc, counted, length
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import Finding, ServerRecord
from windlass.core.moving import Moved
from windlass.core.rule import read_rule
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, total
from windlass.core.store import Inspector, Store
from windlass.kit.damage import DAMAGED
from windlass.version import VERSION
from windlass.zone import zone

DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)
LATE: Final = timedelta(minutes=1)
"""How long after its due time a schedule, or a job that waits, counts as late."""
LONG: Final = timedelta(minutes=15)
"""A job that waits so long in a queue that is worked is told of."""
SKEW: Final = timedelta(seconds=5)
"""How far the clock of the store may be from that of this machine."""
GROWTH: Final = timedelta(minutes=15)
"""How far back a backlog is looked at, by whole minutes."""
PARTS: Final = 3
MUCH: Final = 100
"""What grows by less than that is no backlog."""
MOST_NAMED: Final = 5
DAMAGED_SHOWN: Final = 20
"""Jobs with a damaged record are counted up to this many."""
LOOKED_AT: Final = 1_000
"""Records that are looked at for them, where no index leads there."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The store at one moment, as far as it matters here."""

    now: datetime
    queues: Sequence[QueueStats]
    live: Sequence[ServerRecord]
    silent: Sequence[ServerRecord]
    schedules: Sequence[Schedule]
    minutes: Sequence[MinuteCounts]

    @property
    def waiting(self) -> list[QueueStats]:
        return [queue for queue in self.queues if queue.pending]

    @property
    def claiming(self) -> list[ServerRecord]:
        """The live servers that do not stop."""
        return [server for server in self.live if not is_stopping(server)]


async def checkup(
    store: Store, *, dead_after: timedelta = DEAD_AFTER, clock: Callable[[], datetime] | None = None
) -> list[Finding]:
    """Look over the store and all that works on it; every matter is a finding, also one that is well.

    Nothing is changed. A server that was not seen for `dead_after` counts as gone. `clock` is that of this machine.
    """
    asked_at = None if clock is None else clock()
    now, schedules = await store.schedules()
    skew = None if clock is None or asked_at is None else _skew(now, asked_at, clock())
    servers = await store.servers()
    live = [server for server in servers if is_live(server, now, dead_after)]
    silent = [server for server in servers if server not in live]
    minutes = await store.minutes(since=now - DAY, until=now + MINUTE)
    seen = _Seen(now, await store.stats(), live, silent, schedules, minutes)
    own = await store.check()
    return [
        _versions(seen),
        *([] if skew is None else [_clock(skew)]),
        *own,
        *([] if any(finding.name == "moved" for finding in own) else [_moved(await store.moved())]),
        _servers(seen),
        await _leases(store, dead_after),
        _stuck(seen),
        await _queues(store, seen),
        await _kinds(store, seen),
        _pauses(seen),
        _waits(seen),
        _backlog(seen),
        _dead(seen),
        await _damaged(store, seen),
        _orphaned(seen),
        _overdue(seen),
        _rules(seen),
    ]


def worst(findings: Iterable[Finding]) -> str:
    """Return the level of the worst of `findings`."""
    levels = {finding.level for finding in findings}
    return next((level for level in ("error", "warning") if level in levels), "ok")


def _versions(seen: _Seen) -> Finding:
    mine = VERSION
    text = f"windlass {mine} on Python {platform.python_version()}"
    others = sorted({server.version for server in seen.live} - {mine})
    if not others:
        return Finding("versions", "ok", text)
    return Finding(
        "versions",
        "warning",
        f"{text}, and live servers of version {_listed(others)}",
        "finish the deploy: two releases may work side by side, but not for long",
    )


def _skew(store: datetime, before: datetime, after: datetime) -> timedelta:
    """Return how far the store's clock is ahead; what lies between asking and hearing is no difference."""
    return store - after if store > after else min(store - before, timedelta(0))


def _clock(skew: timedelta) -> Finding:
    if abs(skew) <= SKEW:
        return Finding("clock", "ok", "the clocks of the store and of this machine agree")
    way = "ahead of" if skew > timedelta(0) else "behind"
    return Finding(
        "clock",
        "warning",
        f"the clock of the store is {length(abs(skew))} {way} that of this machine",
        "set both by NTP: leases and due times go by the store's clock, and times that programs give by theirs",
    )


def _moved(moved: Moved | None) -> Finding:
    if moved is None:
        return Finding("moved", "ok", "it takes jobs")
    return Finding(
        "moved",
        "warning",
        f"this store was moved to {moved.to}: it takes nothing new",
        f"let all programs connect there; a move that was interrupted goes on by windlass move ... {moved.to}",
    )


def _servers(seen: _Seen) -> Finding:
    waiting = total(seen.queues)
    start = "start one: windlass worker module:app"
    if seen.silent:
        named = _listed(_process(server) for server in seen.silent)
        message = f"{counted(len(seen.silent), 'server')} not heard of since {_since(seen)}: {named}"
        advice = "see whether its process lives; its jobs are taken back when their leases run out"
        if seen.live or not waiting.pending:
            return Finding("servers", "warning", message, advice)
        return Finding(
            "servers", "error", f"{message}; {counted(waiting.pending, 'job')} waiting", f"{advice}; {start}"
        )
    if seen.live:
        running = sum(server.running for server in seen.live)
        stopping = len(seen.live) - len(seen.claiming)
        text = f"{counted(len(seen.live), 'live server')}, {counted(running, 'job')} running"
        return Finding("servers", "ok", f"{text}, {stopping:,} stopping" if stopping else text)
    if not waiting.pending:
        return Finding("servers", "ok", "no live server, and no job that waits for one")
    # whoever claims by a loop of his own is no server, and his jobs do not wait for long
    oldest = waiting.oldest_waiting
    long = oldest is not None and seen.now - oldest > LATE
    message = f"no live server, and {counted(waiting.pending, 'job')} waiting"
    return Finding("servers", "error" if long else "warning", message, start)


async def _leases(inspector: Inspector, dead_after: timedelta) -> Finding:
    stranded = await inspector.stranded(dead_after=dead_after)
    if not stranded:
        return Finding("leases", "ok", "no lease has run out without a server to take its job back")
    return Finding(
        "leases",
        "error",
        f"{counted(stranded, 'lease')} ran out, and no live server is there to take the jobs back",
        "start a server (windlass worker module:app), or call client.rescue()",
    )


def _stuck(seen: _Seen) -> Finding:
    stuck = [f"{job_id} on {_process(server)}" for server in seen.live for job_id in stuck_in(server)]
    if not stuck:
        return Finding("stuck", "ok", "no job goes on past its timeout")
    return Finding(
        "stuck",
        "warning",
        f"jobs whose time is over, and whose code does not end: {_listed(stuck)}",
        "restart that server, which gives them back; code in a thread has to look at ctx.cancelled by itself",
    )


async def _queues(inspector: Inspector, seen: _Seen) -> Finding:
    worked = {queue for server in seen.claiming for queue in server.queues}
    left = [queue for queue in seen.waiting if queue.queue not in worked and not queue.paused]
    if not seen.live or not left:
        return Finding("queues", "ok", f"{counted(len(seen.waiting), 'queue')} with jobs that wait")
    waiting = await inspector.waiting()
    return Finding(
        "queues",
        "warning",
        f"jobs wait in queues that no live server works: {_listed(_with_count(left))}",
        "; ".join(_ways_to_work(left, waiting)) + "; or look whether the names are right (windlass queues)",
    )


def _ways_to_work(left: Sequence[QueueStats], waiting: Collection[KindStats]) -> Iterator[str]:
    with_raw = {each.queue for each in waiting if not each.kind}
    with_kinds = {each.queue for each in waiting if each.kind}
    of_handlers = [queue for queue in left if queue.queue in with_kinds or queue.queue not in with_raw]
    of_consumers = [queue for queue in left if queue.queue in with_raw]
    if of_handlers:
        yield f"let a server work them (windlass worker --queues {_named(of_handlers, ',')})"
    if of_consumers:
        # a server that works such a queue and has no consumer leaves them where they are
        named = _listed(f"@app.consumer({queue.queue!r})" for queue in of_consumers)
        yield f"for jobs without a kind register a consumer ({named}), or claim them by a loop of your own"


async def _kinds(inspector: Inspector, seen: _Seen) -> Finding:
    known = {kind for server in seen.claiming for kind in server.kinds}
    strange = [
        f"{kind} in {queue.queue}"
        for queue in seen.waiting
        if queue.queue is not None
        for kind in await inspector.kinds(queue.queue, known)
    ]
    if not seen.live or not strange:
        return Finding("kinds", "ok", "no job waits whose kind the live servers do not know")
    return Finding(
        "kinds",
        "warning",
        f"jobs wait whose kind no live server knows: {_listed(strange)}",
        "import the module of its handler in the app, or name the kind among the aliases of another",
    )


def _pauses(seen: _Seen) -> Finding:
    paused = [queue for queue in seen.waiting if queue.paused]
    if not paused:
        return Finding("pauses", "ok", "no job waits in a paused queue")
    return Finding(
        "pauses",
        "warning",
        f"jobs wait in paused queues: {_listed(_with_count(paused))}",
        f"when they are to go on: windlass queues resume {_named(paused, ' ')}",
    )


def _waits(seen: _Seen) -> Finding:
    worked = {queue for server in seen.live for queue in server.queues}
    late = [
        f"{queue.queue} ({length(seen.now - queue.oldest_waiting)})"
        for queue in seen.waiting
        if queue.oldest_waiting is not None
        and seen.now - queue.oldest_waiting > LONG
        and queue.queue in worked
        and not queue.paused
    ]
    if not late:
        return Finding("waits", "ok", f"no job has waited for {length(LONG)} in a queue that is worked")
    return Finding(
        "waits",
        "warning",
        f"the oldest job has waited long in {_listed(late)}",
        "start more servers or raise their concurrency; windlass why ID tells why one of them waits",
    )


def _backlog(seen: _Seen) -> Finding:
    grown = [
        f"{queue.queue} (+{sum(growth):,}, {queue.pending:,} wait)"
        for queue in seen.waiting
        if not queue.paused and min(growth := _growth(seen, queue.queue)) > 0 and sum(growth) >= MUCH
    ]
    if not grown:
        return Finding("backlog", "ok", f"no backlog has grown all through the last {length(GROWTH)}")
    return Finding(
        "backlog",
        "warning",
        f"more jobs came than ended, all through the last {length(GROWTH)}: {_listed(grown)}",
        "start more servers or raise their concurrency, or enqueue less: windlass top shows the rates",
    )


def _growth(seen: _Seen, queue: str | None) -> list[int]:
    """Return by how many jobs a queue has grown in each third of the time: one burst is no growth."""
    grown = [0] * PARTS
    for each in seen.minutes:
        part = (seen.now - each.minute) // (GROWTH / PARTS)
        if each.queue == queue and 0 <= part < PARTS:
            counts = each.counts
            grown[part] += counts.enqueued - counts.succeeded - counts.dead - counts.cancelled
    return grown


def _dead(seen: _Seen) -> Finding:
    counts: dict[str, int] = {}
    for minute in seen.minutes:
        if minute.counts.dead:
            what = f"{minute.kind or 'raw jobs'} in {minute.queue}"
            counts[what] = counts.get(what, 0) + minute.counts.dead
    if not counts:
        return Finding("dead", "ok", "no job has died in the last day")
    often = [f"{counts[what]:,} of {what}" for what in sorted(counts, key=lambda what: (-counts[what], what))]
    return Finding(
        "dead",
        "warning",
        f"{counted(sum(counts.values()), 'job')} died in the last day: {_listed(often)}",
        "see of what (windlass dead --group), mend the cause, then: windlass dead retry",
    )


async def _damaged(inspector: Inspector, seen: _Seen) -> Finding:
    """Tell of schedules whose record is damaged, and of jobs that claims have set aside: these are found cheaply."""
    schedules = [each.id for each in seen.schedules if each.damage is not None]
    jobs: list[Job] = []
    if any(queue.dead for queue in seen.queues):
        chosen = JobFilter(state=State.DEAD, error_type=DAMAGED)
        jobs = (await inspector.newest(chosen, before=None, limit=DAMAGED_SHOWN + 1, most=LOOKED_AT)).jobs
    if not schedules and not jobs:
        return Finding("damaged", "ok", "no job was set aside for a damaged record, and every schedule's record reads")
    told = [f"schedules: {_listed(schedules)}"] if schedules else []
    if jobs:
        count = f"{DAMAGED_SHOWN}+" if len(jobs) > DAMAGED_SHOWN else str(len(jobs))
        told.insert(0, f"{count} dead jobs, the newest {jobs[0].id}")
    return Finding(
        "damaged",
        "warning",
        f"the stored record is damaged of {'; '.join(told)}",
        "repair the stored values and retry the jobs, or delete them (windlass why names the fields); put such "
        "schedules again",
    )


def _orphaned(seen: _Seen) -> Finding:
    declared = _declared(seen)
    lost = [each.id for each in seen.schedules if each.declared and each.id not in declared and not each.paused]
    if not lost:
        return Finding("schedules", "ok", f"{counted(len(seen.schedules), 'schedule')}, none orphaned")
    return Finding(
        "schedules",
        "warning",
        f"declared by code, and by no live server: {_listed(lost)}; they make no jobs",
        "start a server of the app that declares them, or remove them: windlass schedules remove ID",
    )


def _overdue(seen: _Seen) -> Finding:
    declared = _declared(seen)
    late = [
        each.id
        for each in seen.schedules
        if not each.paused
        and (not each.declared or each.id in declared)
        and each.next_run_at is not None
        and each.next_run_at < seen.now - LATE
    ]
    if not late:
        return Finding("due", "ok", "no schedule is overdue")
    return Finding(
        "due",
        "error",
        f"overdue by more than a minute: {_listed(late)}",
        "start a server whose setting schedules is on, and look into its log",
    )


def _rules(seen: _Seen) -> Finding:
    unread = [each.id for each in seen.schedules if not _can_be_read(each)]
    if not unread:
        return Finding("rules", "ok", "the rule of every schedule can be read here")
    return Finding(
        "rules",
        "warning",
        f"schedules whose rule or time zone cannot be read here: {_listed(unread)}",
        "put them again, upgrade windlass, or install the package tzdata",
    )


def _can_be_read(schedule: Schedule) -> bool:
    try:
        read_rule(schedule.rule, zone(schedule.timezone))
    except InvalidValue:
        return False
    return True


def _declared(seen: _Seen) -> Collection[str]:
    return {schedule for server in seen.live for schedule in server.schedules}


def _process(server: ServerRecord) -> str:
    return f"{server.name} ({server.host}, pid {server.pid})"


def _since(seen: _Seen) -> str:
    return at_utc(max(server.seen_at for server in seen.silent))


def _named(queues: Sequence[QueueStats], between: str) -> str:
    return between.join(queue.queue or "" for queue in queues[:MOST_NAMED])


def _with_count(queues: Iterable[QueueStats]) -> list[str]:
    return [f"{queue.queue} ({queue.pending:,})" for queue in queues]


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
