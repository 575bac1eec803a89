"""Commands of a store on Redis: the function that executes each, by one script."""

from datetime import timedelta
from typing import Any, Final, Literal, cast

import msgspec

from windlass.core import commands
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed, KvAny, Renewed, Rescued
from windlass.core.schedule import Fired, FireOutcome
from windlass.core.states import State
from windlass.core.store_calls import Command, table_of
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.kit.records import STATES, server_text
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import log_set_aside
from windlass.stores.redis.queue_settings import set_queue_settings
from windlass.stores.redis.replies import outcomes_in, time_of
from windlass.stores.redis.requests import (
    Ask,
    as_text,
    failure_of,
    jobs_of,
    kept,
    moment,
    names,
    note_of,
    packed_text,
    schedule_fields,
    span,
    spans_kept,
    timing_of,
)

MOST_ASIDE: Final = 1_000
"""Damaged jobs that one script sets aside while it promotes: the server does nothing else meanwhile."""
SERVERS_KEPT: Final = timedelta(days=1)
PARCELS_KEPT: Final = timedelta(days=90)
"""How long it is known which parcel of a move came last: whoever goes on with the move must not take longer."""

_renewals = msgspec.msgpack.Decoder(tuple[int, list[bool | None]])
_decode = msgspec.msgpack.Decoder().decode


async def renew(caller: Caller, command: commands.RenewClaims) -> list[Renewed | None]:
    """Let claims hold for `lease` from now."""
    ask: Ask = {"claims": list(command.claims), "lease": span(command.lease)}
    expires, flags = _renewals.decode(await caller.execute(command, "renew", ask))
    until = time_of(expires)
    return [None if flag is None else Renewed(until, flag) for flag in flags]


async def note(caller: Caller, command: commands.WriteNotes) -> list[bool | None]:
    """Write progress and log lines of running jobs."""
    ask: Ask = {"notes": [note_of(note) for note in command.notes]}
    return cast("list[bool | None]", _decode(await caller.execute(command, "note", ask)))


async def cancel(caller: Caller, command: commands.CancelJobs) -> list[CancelOutcome]:
    """End waiting jobs, flag running ones."""
    ask: Ask = {"ids": list(command.ids), "keep": kept(command.retention, State.CANCELLED)}
    return [CancelOutcome(outcome) for outcome in await _outcomes(caller, command, "cancel", ask)]


async def retry(caller: Caller, command: commands.RetryJobs) -> list[Changed]:
    """Give finished jobs a new life."""
    return await _change(caller, command, "retry", {"ids": list(command.ids)})


async def delete(caller: Caller, command: commands.DeleteJobs) -> list[Changed]:
    """Delete finished jobs."""
    return await _change(caller, command, "delete", {"ids": list(command.ids)})


async def reschedule(caller: Caller, command: commands.RescheduleJobs) -> list[Changed]:
    """Give waiting jobs another time."""
    ask: Ask = {"ids": list(command.ids), "run_at": moment(command.run_at)}
    return await _change(caller, command, "reschedule", ask)


async def _change(
    caller: Caller, command: Command[list[Changed]], name: Literal["retry", "delete", "reschedule"], ask: Ask
) -> list[Changed]:
    return [Changed(outcome) for outcome in await _outcomes(caller, command, name, ask)]


async def _outcomes(caller: Caller, command: Command[Any], name: str, ask: Ask) -> list[str]:
    """Return what became of each job; raises for the first damaged one, when the others were seen to."""
    outcomes = outcomes_in(await caller.execute(command, name, ask))
    for outcome in outcomes:
        if not isinstance(outcome, str):
            raise await caller.stored.error(*outcome, also="; what the call did to other jobs is done")
    return cast("list[str]", outcomes)


async def rescue(caller: Caller, command: commands.RescueClaims) -> list[Rescued]:
    """Take back claims."""
    request = command.request
    failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
    ask: Ask = {
        "queues": None if request.queues is None else list(dict.fromkeys(request.queues)),
        "workers": None if request.workers is None else names(request.workers),
        "force": request.force,
        "to": request.to,
        "limit": request.limit,
        "keep": kept(command.retention, State.DEAD),
        "failure": failure_of(failure),
    }
    rescued, damaged = _decode(await caller.execute(command, "rescue", ask))
    log_set_aside(damaged)
    return [Rescued(JobId(job_id), STATES[state]) for job_id, state in rescued]


async def promote(caller: Caller, command: commands.PromoteJobs) -> int:
    """Make due jobs pending."""
    done = 0
    while True:
        ask: Ask = {"limit": command.limit - done, "most_aside": MOST_ASIDE}
        promoted, damaged = _decode(await caller.execute(command, "promote", ask))
        log_set_aside(damaged)
        done += cast("int", promoted)
        if done >= command.limit or len(damaged) < MOST_ASIDE:
            return done


async def prune(caller: Caller, command: commands.PruneRecords) -> int:
    """Delete records past their retention."""
    ask: Ask = {
        "keep": spans_kept(command.retention),
        "most": command.retention.most,
        "limit": command.limit,
        "servers_kept": span(SERVERS_KEPT),
        "parcels_kept": span(PARCELS_KEPT),
    }
    return cast("int", _decode(await caller.execute(command, "prune", ask)))


async def write_schedule(caller: Caller, command: commands.WriteSchedule) -> int | None:
    """Write a schedule if its revision is still the expected one."""
    schedule = command.schedule
    ask: Ask = {"id": schedule.id, "expected": command.expected, "fields": schedule_fields(schedule)}
    return cast("int | None", _decode(await caller.execute(command, "write_schedule", ask)))


async def remove_schedule(caller: Caller, command: commands.RemoveSchedule) -> bool:
    """Remove a schedule."""
    return cast("bool", _decode(await caller.execute(command, "remove_schedule", {"id": command.schedule_id})))


async def fire(caller: Caller, command: commands.FireSchedule) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    firing = command.firing
    ask: Ask = {
        "id": firing.schedule_id,
        "revision": firing.revision,
        "jobs": jobs_of(firing.jobs),
        "tick": moment(firing.tick),
        "next_run_at": moment(firing.next_run_at),
    }
    outcome, *answer = _decode(await caller.execute(command, "fire", ask))
    if outcome == "conflict":
        raise await caller.stored.refusal(*answer)
    [last] = answer
    return Fired(FireOutcome(outcome), None if last is None else JobId(last))


async def write_kv(caller: Caller, command: commands.WriteKv) -> bool:
    """Write one of the caller's own values."""
    write = command.write
    ask: Ask = {"key": as_text(write.key), "value": None if write.value is None else as_text(write.value)}
    if isinstance(write.expected, KvAny):
        ask["any"] = True
    elif write.expected is not None:
        ask["expected"] = as_text(write.expected)
    return cast("bool", _decode(await caller.execute(command, "kv_write", ask)))


async def take_lock(caller: Caller, command: commands.TakeLock) -> bool:
    """Take or renew a lock."""
    ask: Ask = {"name": command.name, "holder": command.holder, "ttl": span(command.ttl)}
    return cast("bool", _decode(await caller.execute(command, "lock", ask)))


async def free_lock(caller: Caller, command: commands.FreeLock) -> bool:
    """Free a lock."""
    ask: Ask = {"name": command.name, "holder": command.holder}
    return cast("bool", _decode(await caller.execute(command, "unlock", ask)))


async def write_heartbeat(caller: Caller, command: commands.WriteHeartbeat) -> None:
    """Write that a server is live."""
    await caller.execute(command, "beat", {"id": command.server.id, "record": server_text(command.server)})


async def remove_server(caller: Caller, command: commands.RemoveServer) -> None:
    """Remove the record of a server."""
    await caller.execute(command, "leave", {"id": command.server_id})


async def write_timings(caller: Caller, command: commands.WriteTimings) -> None:
    """Add up how long attempts took."""
    await caller.execute(command, "write_timings", {"timings": [timing_of(timing) for timing in command.timings]})


async def write_audit(caller: Caller, command: commands.WriteAudit) -> None:
    """Keep what people did."""
    await caller.execute(command, "write_audit", {"entries": [packed_text(entry) for entry in command.entries]})


COMMANDS: Final = table_of(
    commands.RenewClaims.by_coroutine(renew),
    commands.WriteNotes.by_coroutine(note),
    commands.CancelJobs.by_coroutine(cancel),
    commands.RetryJobs.by_coroutine(retry),
    commands.DeleteJobs.by_coroutine(delete),
    commands.RescheduleJobs.by_coroutine(reschedule),
    commands.SetQueueSettings.by_coroutine(set_queue_settings),
    commands.RescueClaims.by_coroutine(rescue),
    commands.PromoteJobs.by_coroutine(promote),
    commands.PruneRecords.by_coroutine(prune),
    commands.WriteSchedule.by_coroutine(write_schedule),
    commands.RemoveSchedule.by_coroutine(remove_schedule),
    commands.FireSchedule.by_coroutine(fire),
    commands.WriteKv.by_coroutine(write_kv),
    commands.TakeLock.by_coroutine(take_lock),
    commands.FreeLock.by_coroutine(free_lock),
    commands.WriteHeartbeat.by_coroutine(write_heartbeat),
    commands.RemoveServer.by_coroutine(remove_server),
    commands.WriteTimings.by_coroutine(write_timings),
    commands.WriteAudit.by_coroutine(write_audit),
)
"""The coroutine function that executes each command, but for those of `windlass move`."""
