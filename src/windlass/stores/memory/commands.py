"""Commands of a store in memory; each function runs inside an atomic step."""

from typing import Final

from windlass.core import commands
from windlass.core.job import Enqueued
from windlass.core.requests import CancelOutcome, Changed, Claimed, Renewed, SettleResult
from windlass.core.schedule import Fired
from windlass.core.store_calls import table_of
from windlass.core.topics import PAUSES, lock_topic
from windlass.kit.moves import claiming, enqueuing, settling, steering
from windlass.stores.memory import maintenance, queues, store_move
from windlass.stores.memory.atomic_step import MemoryState


def enqueue(state: MemoryState, command: commands.EnqueueJobs) -> list[Enqueued]:
    """Enqueue jobs, all or none."""
    return enqueuing.enqueue(state.table, command.jobs, state.now)


def claim(state: MemoryState, command: commands.ClaimJobs) -> Claimed:
    """Give ready jobs to the caller."""
    known = (state.table.queues.get(name) for name in dict.fromkeys(command.request.queues))
    giving = [queue for queue in known if queue is not None and not queue.paused]
    for queue in giving:
        maintenance.promote_queue(state, queue)
    ready = queues.ready(giving, command.request)
    return Claimed(claiming.claim(state.table, ready, command.request, state.rng, state.now))


def claim_again(state: MemoryState, claimed: Claimed) -> Claimed:
    """Return those of an earlier reply that still hold their job."""
    return Claimed(claiming.still_held(state.table, [(claim.job.id, claim.token) for claim in claimed.jobs]))


def settle(state: MemoryState, command: commands.SettleClaims) -> list[SettleResult]:
    """Write how claims ended."""
    return [settling.settle(state.table, settlement, state.now) for settlement in command.settlements]


def renew(state: MemoryState, command: commands.RenewClaims) -> list[Renewed | None]:
    """Let claims hold for longer."""
    return claiming.renew(state.table, command.claims, command.lease, state.now)


def note(state: MemoryState, command: commands.WriteNotes) -> list[bool]:
    """Write progress and log lines of running jobs."""
    return [claiming.note(state.table, note, state.now) for note in command.notes]


def cancel(state: MemoryState, command: commands.CancelJobs) -> list[CancelOutcome]:
    """End waiting jobs, and flag running ones."""
    return [steering.cancel(state.table, job_id, command.retention, state.now) for job_id in command.ids]


def retry(state: MemoryState, command: commands.RetryJobs) -> list[Changed]:
    """Give dead and cancelled jobs a full new budget."""
    return [steering.retry(state.table, job_id, state.now) for job_id in command.ids]


def delete(state: MemoryState, command: commands.DeleteJobs) -> list[Changed]:
    """Delete finished jobs."""
    return [steering.delete(state.table, job_id) for job_id in command.ids]


def reschedule(state: MemoryState, command: commands.RescheduleJobs) -> list[Changed]:
    """Let waiting jobs run at another time."""
    return [steering.reschedule(state.table, job_id, command.run_at, state.now) for job_id in command.ids]


def set_queue_settings(state: MemoryState, command: commands.SetQueueSettings) -> None:
    """Set settings of a queue, such as whether it gives claims."""
    queue = state.table.queue(command.queue)
    queue.set_settings(queue.settings.changed(command.settings, command.layer))
    if command.settings.paused is not None:
        state.table.news.add(PAUSES if command.settings.paused else queue.topic)


def write_schedule(state: MemoryState, command: commands.WriteSchedule) -> int | None:
    """Write a schedule if its revision is still the expected one."""
    return state.schedules.write(command.schedule, command.expected)


def remove_schedule(state: MemoryState, command: commands.RemoveSchedule) -> bool:
    """Remove a schedule."""
    return state.schedules.remove(command.schedule_id)


def fire(state: MemoryState, command: commands.FireSchedule) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    return state.schedules.fire(command.firing, state.now)


def write_kv(state: MemoryState, command: commands.WriteKv) -> bool:
    """Write one of the caller's own values if its condition holds."""
    return state.table.keyspace.write(command.write)


def take_lock(state: MemoryState, command: commands.TakeLock) -> bool:
    """Take or renew a lock."""
    return state.house.lock(command.name, command.holder, command.ttl, state.now)


def free_lock(state: MemoryState, command: commands.FreeLock) -> bool:
    """Free a lock."""
    state.table.news.add(lock_topic(command.name))
    return state.house.unlock(command.name, command.holder, state.now)


def write_heartbeat(state: MemoryState, command: commands.WriteHeartbeat) -> None:
    """Write that a server is live."""
    state.house.beat(command.server, state.now)


def remove_server(state: MemoryState, command: commands.RemoveServer) -> None:
    """Remove the record of a server."""
    state.house.servers.pop(command.server_id, None)


def write_timings(state: MemoryState, command: commands.WriteTimings) -> None:
    """Add counts to those that are kept."""
    state.house.add_timings(command.timings)


def write_audit(state: MemoryState, command: commands.WriteAudit) -> None:
    """Keep what people did."""
    state.house.audit.extend(command.entries)


COMMANDS: Final = table_of(
    commands.RenewClaims.by(renew),
    commands.WriteNotes.by(note),
    commands.CancelJobs.by(cancel),
    commands.RetryJobs.by(retry),
    commands.DeleteJobs.by(delete),
    commands.RescheduleJobs.by(reschedule),
    commands.SetQueueSettings.by(set_queue_settings),
    commands.RescueClaims.by(maintenance.rescue),
    commands.PromoteJobs.by(maintenance.promote),
    commands.PruneRecords.by(maintenance.prune),
    commands.WriteSchedule.by(write_schedule),
    commands.RemoveSchedule.by(remove_schedule),
    commands.FireSchedule.by(fire),
    commands.WriteKv.by(write_kv),
    commands.TakeLock.by(take_lock),
    commands.FreeLock.by(free_lock),
    commands.WriteHeartbeat.by(write_heartbeat),
    commands.RemoveServer.by(remove_server),
    commands.WriteTimings.by(write_timings),
    commands.WriteAudit.by(write_audit),
    commands.SetMoved.by(store_move.set_moved),
    commands.UnpackJobs.by(store_move.unpack),
    commands.DeleteMoved.by(store_move.let_go),
    commands.TakeKeys.by(store_move.take_keys),
)
"""The function that executes each command."""
