"""Why a job waits: what stands between it and its claim."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from windlass.client.server_details import is_stopping, slots_of, takes
from windlass.client.spoken import at_utc, counted, did_you_mean, distance, length
from windlass.client.why.known import LATELY, Fact, Known, Reason, shown_server
from windlass.core.job import Job
from windlass.core.looks import ServerRecord
from windlass.core.verdict import LEASE_EXPIRED

COUNTED: Final = 1_000
"""As far as a store counts the jobs that are ahead."""
LONG: Final = timedelta(seconds=30)
"""A job that nothing stands in the way of is claimed sooner than that."""
START: Final = "start one: windlass worker module:app"


def scheduled(known: Known, job: Job) -> Iterator[Reason]:
    """Tell until when a job waits and why, and what it will meet then."""
    if job.run_at <= known.now:
        yield _due(known, job)
        yield from pending(known, job)
        return
    yield _later(known, job)
    yield from _asked_to_stop(job)
    yield from _obstacles(known, job)
    yield from _retried(known, job)
    yield from _alone(job)


def pending(known: Known, job: Job) -> Iterator[Reason]:
    """Tell what stands between a job that is due and its claim."""
    yield from _asked_to_stop(job)
    found = list(_obstacles(known, job))
    yield from found
    yield from _failed_before(job)
    yield from _retried(known, job)
    yield from _alone(job)
    busy = list(_busy(known, job))
    yield from busy
    behind = list(_behind(known, job))
    yield from behind
    if not found and not busy and not behind:
        yield _ready(known, job)


def _due(known: Known, job: Job) -> Reason:
    return Reason(
        "due",
        f"it was to run at {at_utc(job.run_at)}, {distance(job.run_at, known.now)}: the next claim of its queue, or a "
        "server's next look, puts it in line",
        None if known.live else "nobody looks while no server is live: start one, or call client.promote()",
        {"run_at": job.run_at, "attempt": job.attempt, "max_attempts": job.max_attempts},
    )


def _later(known: Known, job: Job) -> Reason:
    when = f"{distance(job.run_at, known.now)}, at {at_utc(job.run_at)}"
    facts: dict[str, Fact] = {"run_at": job.run_at, "seconds": (job.run_at - known.now).total_seconds()}
    sooner = f"to run it at once: windlass jobs run-now {job.id}"
    outcome = job.history[-1].outcome if job.history else None
    if outcome == "snoozed":
        return Reason("snoozed", f"its handler put it off: it goes on {when}", sooner, facts)
    if job.attempt:
        told = {**facts, "attempt": job.attempt, "max_attempts": job.max_attempts, "error": job.last_error}
        message = (
            f"attempt {job.attempt:,} of {job.max_attempts:,} failed ({error_of(job)}): the next one begins {when}"
        )
        return Reason("retry_later", message, sooner, told)
    return Reason("run_later", f"it is to run later: {when}", sooner, facts)


def _asked_to_stop(job: Job) -> Iterator[Reason]:
    if job.cancel_requested:
        yield Reason("cancel_requested", "it was asked to stop: the server that claims it next ends it as cancelled")


def _retried(known: Known, job: Job) -> Iterator[Reason]:
    last = job.history[-1] if job.history else None
    if last is None or last.retried_at is None:
        return
    error = "" if last.failure is None else f" ({_first_line(last.failure.full_summary)})"
    ended = (
        f"delivery {last.delivery:,} had ended as {last.outcome}{error}"
        if last.delivery
        else f"it had ended as {last.outcome} before its first claim"
    )
    yield Reason(
        "retried",
        f"an operator retried it {distance(last.retried_at, known.now)}, at {at_utc(last.retried_at)}: {ended}",
        None,
        {"retried_at": last.retried_at, "delivery": last.delivery},
    )


def _obstacles(known: Known, job: Job) -> Iterator[Reason]:
    """Give what no time helps against: somebody has to do something."""
    if known.queue.paused:
        yield Reason(
            "queue_paused",
            f"queue {job.queue!r} is paused: no job of it is claimed",
            f"to let it go on: windlass queues resume {job.queue}",
            {"queue": job.queue},
        )
    live = known.claiming
    working = [server for server in live if job.queue in server.queues]
    if not any(server.queues for server in live):
        yield _no_server(known)
    elif not working:
        yield _not_worked(known, job, live)
    elif not any(takes(server, job) for server in working):
        yield _not_known(job, working, live)


def _no_server(known: Known) -> Reason:
    message = "no server is live that works any queue"
    last = max(known.servers, key=lambda server: server.seen_at, default=None)
    if last is not None and not known.is_live(last):
        message += f"; the last one, {shown_server(last)}, was heard of {distance(last.seen_at, known.now)}"
    elif last is not None and is_stopping(last):
        message += f"; {shown_server(last)} is stopping, and claims no more"
    if known.ended_lately:
        message += f"; {_by_loops(known)}"
    return Reason("no_server", message, START, {"servers": 0, "ended_lately": known.ended_lately})


def _not_worked(known: Known, job: Job, live: list[ServerRecord]) -> Reason:
    worked = sorted({queue for server in live for queue in server.queues})
    raw = "it has no kind, and " if job.kind is None else ""
    message = f"{raw}no live server works queue {job.queue!r}{did_you_mean(job.queue, worked)}"
    if known.ended_lately:
        message += f"; {_by_loops(known)}"
    a_server = f"let a server work it (windlass worker --queues {job.queue}), or enqueue into a queue that is worked"
    return Reason(
        "queue_not_worked",
        message,
        _register_a_consumer(job) if job.kind is None else a_server,
        {"queue": job.queue, "servers": len(live), "worked": " ".join(worked)},
    )


def _by_loops(known: Known) -> str:
    return (
        f"yet {counted(known.ended_lately, 'claim')} of its queue ended in the last {length(LATELY)}: somebody claims "
        "by a loop of his own"
    )


def _not_known(job: Job, working: list[ServerRecord], live: list[ServerRecord]) -> Reason:
    if job.kind is None:
        return Reason(
            "no_consumer",
            f"it has no kind, and no live server of queue {job.queue!r} has a consumer for raw jobs",
            _register_a_consumer(job),
            {"queue": job.queue, "servers": len(working)},
        )
    kinds = sorted({kind for server in working for kind in server.kinds})
    message = f"no live server of queue {job.queue!r} knows the kind {job.kind!r}{did_you_mean(job.kind, kinds)}"
    elsewhere = [server for server in live if job.kind in server.kinds]
    if elsewhere:
        message += f"; {shown_server(elsewhere[0])} knows it and does not work this queue"
    return Reason(
        "kind_unknown",
        message,
        "import the module of its handler in the app, or name the kind among the aliases of another",
        {"kind": job.kind, "queue": job.queue, "known": " ".join(kinds)},
    )


def _register_a_consumer(job: Job) -> str:
    return f"register a consumer (@app.consumer({job.queue!r})), or claim it by a loop of your own"


def _failed_before(job: Job) -> Iterator[Reason]:
    if job.attempt and job.last_error is not None:
        yield Reason(
            "failed_before",
            f"attempt {job.attempt:,} of {job.max_attempts:,} failed ({error_of(job)}); it is in line for the next one",
            None,
            {"attempt": job.attempt, "max_attempts": job.max_attempts, "error": job.last_error},
        )


def _alone(job: Job) -> Iterator[Reason]:
    if 0 < job.attempt == job.max_attempts - 1 and job.last_error == LEASE_EXPIRED.summary:
        yield Reason(
            "runs_alone",
            "its last attempt went down with its server, and one is left: that one waits until a server runs nothing "
            "else, so that nothing else dies with it",
            "see in the log of its last server why that died, before it is tried again",
            {"attempt": job.attempt, "max_attempts": job.max_attempts, "rescued": rescues(job)},
        )


def _busy(known: Known, job: Job) -> Iterator[Reason]:
    able = [server for server in known.claiming if job.queue in server.queues and takes(server, job)]
    slots = [slots_of(server) for server in able]
    if not able or any(count is None or server.running < count for server, count in zip(able, slots, strict=True)):
        return
    running, most = sum(server.running for server in able), sum(count or 0 for count in slots)
    yield Reason(
        "all_busy",
        f"all slots are busy: {counted(len(able), 'server')} of its queue run {running:,} of {counted(most, 'job')} "
        "at once",
        "raise the concurrency of the servers, or start another one",
        {"servers": len(able), "running": running, "slots": most},
    )


def _behind(known: Known, job: Job) -> Iterator[Reason]:
    if not known.ahead:
        return
    many = f"{COUNTED:,} jobs or more" if known.ahead >= COUNTED else counted(known.ahead, "job")
    message = f"it waits behind {many} of its queue, by priority, due time and order"
    seconds = None
    if known.ended_lately:
        each = LATELY.total_seconds() / known.ended_lately
        seconds = round(known.ahead * each, 1)
        least = "at least" if known.ahead >= COUNTED else "about"
        message += f"; at the rate of the last {length(LATELY)} its turn comes in {least} {_about(seconds)}"
    elif known.queue.running == 0:
        message += f"; not one has ended in the last {length(LATELY)}"
    yield Reason(
        "behind",
        message,
        None,
        {"ahead": known.ahead, "priority": job.priority, "seconds": seconds, "ended_lately": known.ended_lately},
    )


def _about(seconds: float) -> str:
    return "a second" if seconds < 1 else length(timedelta(seconds=seconds))


def _ready(known: Known, job: Job) -> Reason:
    waited = max(known.now - job.run_at, timedelta(0))
    facts = {"waited_seconds": waited.total_seconds()}
    if waited < LONG:
        return Reason("ready", "it is the next of its queue, and is claimed at once", None, facts)
    named = ", ".join(
        shown_server(server) for server in known.claiming if job.queue in server.queues and takes(server, job)
    )
    return Reason(
        "ready",
        f"it is the next of its queue, and nothing stands in its way; but it has been in line for {length(waited)}",
        f"look into the log of whoever should claim it: {named}",
        facts,
    )


def rescues(job: Job) -> int:
    """Return how many deliveries of a job ended because its server died, as far as its history is kept."""
    return sum(delivery.outcome == "rescued" for delivery in job.history)


def error_of(job: Job, most: int = 200) -> str:
    """Return the first line of the last error, cut where it is long."""
    return _first_line(job.last_error or "no error was stored", most)


def _first_line(error: str, most: int = 200) -> str:
    lines = error.strip().splitlines() or ["an empty error"]
    return lines[0] if len(lines[0]) <= most else lines[0][: most - 3] + "..."
