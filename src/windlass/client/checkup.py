"""What `doctor` looks at in every store: over `Inspector` alone, so that a dashboard may show the same."""

import platform
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Final

from windlass.client.claims import DEAD_AFTER
from windlass.core.duration import later
from windlass.core.errors import InvalidValue
from windlass.core.rule import read_rule
from windlass.core.schedule import Schedule
from windlass.core.stats import QueueStats, total
from windlass.core.store import Finding, Inspector, ServerRecord
from windlass.zone import zone

DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)
LATE: Final = timedelta(minutes=1)
"""How long after its due time a schedule, or a job that waits, counts as late."""
MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class _Seen:
    """The store at one moment, as far as it matters here."""

    now: datetime
    queues: Sequence[QueueStats]
    live: Sequence[ServerRecord]
    silent: Sequence[ServerRecord]
    schedules: Sequence[Schedule]

    @property
    def waiting(self) -> list[QueueStats]:
        return [queue for queue in self.queues if queue.pending]


async def checkup(inspector: Inspector, *, dead_after: timedelta = DEAD_AFTER) -> list[Finding]:
    """Look over the store and all that works on it; every matter is a finding, also one that is well.

    Nothing is changed. A server that was not seen for `dead_after` counts as gone.
    """
    now, schedules = await inspector.schedules()
    servers = await inspector.servers()
    live = [server for server in servers if later(server.seen_at, dead_after) > now]
    silent = [server for server in servers if server not in live]
    seen = _Seen(now, await inspector.stats(), live, silent, schedules)
    return [
        _versions(seen),
        *await inspector.check(),
        _servers(seen),
        await _leases(inspector, dead_after),
        _queues(seen),
        await _kinds(inspector, seen),
        _pauses(seen),
        await _dead(inspector, seen),
        _orphaned(seen),
        _overdue(seen),
        _rules(seen),
    ]


def worst(findings: Iterable[Finding]) -> str:
    """Return the level of the worst of `findings`."""
    levels = {finding.level for finding in findings}
    return next((level for level in ("error", "warning") if level in levels), "ok")


def _versions(seen: _Seen) -> Finding:
    mine = version("windlass")
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


def _servers(seen: _Seen) -> Finding:
    waiting = total(seen.queues)
    start = "start one: windlass worker module:app"
    if seen.silent:
        named = _listed(f"{server.name} ({server.host}, pid {server.pid})" for server in seen.silent)
        message = f"{_count(len(seen.silent), 'server')} not heard of since {_since(seen)}: {named}"
        advice = "see whether its process lives; its jobs are taken back when their leases run out"
        if seen.live or not waiting.pending:
            return Finding("servers", "warning", message, advice)
        return Finding("servers", "error", f"{message}; {_count(waiting.pending, 'job')} waiting", f"{advice}; {start}")
    if seen.live:
        running = sum(server.running for server in seen.live)
        return Finding("servers", "ok", f"{_count(len(seen.live), 'live server')}, {_count(running, 'job')} running")
    if not waiting.pending:
        return Finding("servers", "ok", "no live server, and no job that waits for one")
    # whoever claims by a loop of his own is no server, and his jobs do not wait for long
    oldest = waiting.oldest_waiting
    long = oldest is not None and seen.now - oldest > LATE
    message = f"no live server, and {_count(waiting.pending, 'job')} waiting"
    return Finding("servers", "error" if long else "warning", message, start)


async def _leases(inspector: Inspector, dead_after: timedelta) -> Finding:
    stranded = await inspector.stranded(dead_after=dead_after)
    if not stranded:
        return Finding("leases", "ok", "no lease has run out without a server to take its job back")
    return Finding(
        "leases",
        "error",
        f"{_count(stranded, 'lease')} ran out, and no live server is there to take the jobs back",
        "start a server, open a client with services=True, or call client.rescue()",
    )


def _queues(seen: _Seen) -> Finding:
    worked = {queue for server in seen.live for queue in server.queues}
    left = [queue for queue in seen.waiting if queue.queue not in worked and not queue.paused]
    if not seen.live or not left:
        return Finding("queues", "ok", f"{_count(len(seen.waiting), 'queue')} with jobs that wait")
    return Finding(
        "queues",
        "warning",
        f"jobs wait in queues that no live server works: {_listed(_with_count(left))}",
        "name them among the queues of a server, or look whether the name is right",
    )


async def _kinds(inspector: Inspector, seen: _Seen) -> Finding:
    known = {kind for server in seen.live for kind in server.kinds}
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
        "resume them when they are to go on: client.resume(queue)",
    )


async def _dead(inspector: Inspector, seen: _Seen) -> Finding:
    counts: dict[str, int] = {}
    for minute in await inspector.minutes(since=seen.now - DAY, until=seen.now + MINUTE):
        if minute.counts.dead:
            what = f"{minute.kind or 'raw jobs'} in {minute.queue}"
            counts[what] = counts.get(what, 0) + minute.counts.dead
    if not counts:
        return Finding("dead", "ok", "no job has died in the last day")
    often = [f"{counts[what]:,} of {what}" for what in sorted(counts, key=lambda what: (-counts[what], what))]
    return Finding(
        "dead",
        "warning",
        f"{_count(sum(counts.values()), 'job')} died in the last day: {_listed(often)}",
        "see why by client.dead_jobs(queue), mend the cause, then client.retry(...)",
    )


def _orphaned(seen: _Seen) -> Finding:
    declared = _declared(seen)
    lost = [each.id for each in seen.schedules if each.declared and each.id not in declared and not each.paused]
    if not lost:
        return Finding("schedules", "ok", f"{_count(len(seen.schedules), 'schedule')}, none orphaned")
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


def _since(seen: _Seen) -> str:
    return f"{max(server.seen_at for server in seen.silent):%Y-%m-%d %H:%M:%S} UTC"


def _with_count(queues: Iterable[QueueStats]) -> list[str]:
    return [f"{queue.queue} ({queue.pending:,})" for queue in queues]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
