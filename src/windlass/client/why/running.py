"""What a running job is held by, and whether anything comes of it."""

from collections.abc import Iterator

from windlass.client.server_details import stuck_in
from windlass.client.spoken import amount, at_utc, distance, length
from windlass.client.why.known import Fact, Known, Reason, shown_server
from windlass.core.job import Job
from windlass.core.looks import ServerRecord


def running(known: Known, job: Job) -> Iterator[Reason]:
    """Tell who holds a job, until when, and what becomes of it if its holder is gone."""
    holder = next((server for server in known.servers if server.id == job.worker), None)
    expires = job.lease_expires_at
    if expires is not None and expires <= known.now:
        yield _expired(known, job, holder)
    else:
        yield _held(known, job, holder)
        yield from _silent(known, job, holder)
    if holder is not None and job.id in stuck_in(holder):
        yield Reason(
            "past_timeout",
            "its time was over, and its code does not end: it holds its slot until it does, or its server ends",
            f"restart {shown_server(holder)}; code in a thread cannot be ended, so let it look at ctx.cancelled",
        )
    if job.cancel_requested:
        yield Reason("cancel_requested", "it was asked to stop, and its holder is told; its code has not ended yet")


def _held(known: Known, job: Job, holder: ServerRecord | None) -> Reason:
    since = job.claimed_at or job.run_at
    message = f"it is running: {_named(job, holder)} has held it for {length(known.now - since)}"
    if job.lease_expires_at is not None:
        message += (
            f", its lease lasts until {at_utc(job.lease_expires_at)} ({distance(job.lease_expires_at, known.now)})"
        )
    if job.progress is not None and job.progress.total:
        message += f"; {amount(job.progress.done)} of {amount(job.progress.total)} done"
    return Reason("running", message, f"to see what it does: windlass jobs show {job.id} --follow", _facts(job, holder))


def _silent(known: Known, job: Job, holder: ServerRecord | None) -> Iterator[Reason]:
    then = "" if job.lease_expires_at is None else f" {at_utc(job.lease_expires_at)}"
    if holder is not None and not known.is_live(holder):
        yield Reason(
            "holder_silent",
            f"its server was last heard of {distance(holder.seen_at, known.now)}: unless it comes back, the job is "
            f"taken back when its lease runs out{then}",
            f"see whether process {holder.pid} on {holder.host} lives",
            {"server": holder.id, "host": holder.host, "pid": holder.pid, "seen_at": holder.seen_at},
        )
    elif holder is None and "#" in (job.worker or ""):
        # an id of a server, which is registered before its first claim
        yield Reason(
            "holder_gone",
            f"its server has left: unless its claim is renewed, the job is taken back when its lease runs out{then}",
            None,
            {"server": job.worker},
        )


def _expired(known: Known, job: Job, holder: ServerRecord | None) -> Reason:
    expires = job.lease_expires_at or known.now
    message = f"the lease of {_named(job, holder)} ran out {distance(expires, known.now)}: the job is nobody's"
    if rescuers := known.rescuers:
        end = "it is dead then, since no attempt is left" if job.attempt >= job.max_attempts else "it is in line then"
        return Reason(
            "lease_expired",
            f"{message}, and {shown_server(rescuers[0])} takes it back at its next look, every few seconds; {end}",
            None,
            {**_facts(job, holder), "rescuer": rescuers[0].id},
        )
    return Reason(
        "lease_expired",
        f"{message}, and no live server is there to take it back",
        "start a server (windlass worker module:app), or call client.rescue()",
        {**_facts(job, holder), "rescuer": None},
    )


def _named(job: Job, holder: ServerRecord | None) -> str:
    if holder is not None:
        return f"server {shown_server(holder)}"
    return "somebody without a name" if job.worker is None else f"worker {job.worker}"


def _facts(job: Job, holder: ServerRecord | None) -> dict[str, Fact]:
    return {
        "worker": job.worker,
        "host": None if holder is None else holder.host,
        "pid": None if holder is None else holder.pid,
        "claimed_at": job.claimed_at,
        "lease_expires_at": job.lease_expires_at,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "delivery": job.delivery,
    }
