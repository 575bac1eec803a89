"""Commands that all stores of Python records execute alike; each function runs inside an atomic step of its store."""

from typing import Final

from windlass.core import commands
from windlass.core.job import Enqueued
from windlass.core.moving import Unpacked
from windlass.core.requests import CancelOutcome, Changed, Renewed, SettleResult
from windlass.core.schedule import Fired
from windlass.core.store_calls import table_of
from windlass.core.topics import PAUSES, lock_topic
from windlass.kit.moves import claiming, enqueuing, moving, settling, steering
from windlass.kit.moves.store_state import StoreState


def enqueue(state: StoreState, command: commands.EnqueueJobs) -> list[Enqueued]:
    """Enqueue jobs, all or none."""
    return enqueuing.enqueue(state.table, command.jobs, state.now)


def settle(state: StoreState, command: commands.SettleClaims) -> list[SettleResult]:
    """Write how claims ended."""
    return [settling.settle(state.table, settlement, state.now) for settlement in command.settlements]


def renew(state: StoreState, command: commands.RenewClaims) -> list[Renewed | None]:
    """Let claims hold for longer."""
    return claiming.renew(state.table, command.claims, command.lease, state.now)


def note(state: StoreState, command: commands.WriteNotes) -> list[bool]:
    """Write progress and log lines of running jobs."""
    return [claiming.note(state.table, note, state.now) for note in command.notes]


def cancel(state: StoreState, command: commands.CancelJobs) -> list[CancelOutcome]:
    """End waiting jobs, and flag running ones."""
    return [steering.cancel(state.table, job_id, command.retention, state.now) for job_id in command.ids]


def retry(state: StoreState, command: commands.RetryJobs) -> list[Changed]:
    """Give dead and cancelled jobs a full new budget."""
    return [steering.retry(state.table, job_id, state.now) for job_id in command.ids]


def delete(state: StoreState, command: commands.DeleteJobs) -> list[Changed]:
    """Delete finished jobs."""
    return [steering.delete(state.table, job_id) for job_id in command.ids]


def reschedule(state: StoreState, command: commands.RescheduleJobs) -> list[Changed]:
    """Let waiting jobs run at another time."""
    return [steering.reschedule(state.table, job_id, command.run_at, state.now) for job_id in command.ids]


def write_schedule(state: StoreState, command: commands.WriteSchedule) -> int | None:
    """Write a schedule if its revision is still the expected one."""
    return state.schedules.write(command.schedule, command.expected)


def remove_schedule(state: StoreState, command: commands.RemoveSchedule) -> bool:
    """Remove a schedule."""
    return state.schedules.remove(command.schedule_id)


def fire(state: StoreState, command: commands.FireSchedule) -> Fired:
    """Enqueue the jobs of a schedule and move its next run on."""
    return state.schedules.fire(command.firing, state.now)


def write_kv(state: StoreState, command: commands.WriteKv) -> bool:
    """Write one of the caller's own values if its condition holds."""
    return state.keyspace.write(command.write)


def take_lock(state: StoreState, command: commands.TakeLock) -> bool:
    """Take or renew a lock."""
    return state.house.lock(command.name, command.holder, command.ttl, state.now)


def free_lock(state: StoreState, command: commands.FreeLock) -> bool:
    """Free a lock."""
    state.table.news.add(lock_topic(command.name))
    return state.house.unlock(command.name, command.holder, state.now)


def write_heartbeat(state: StoreState, command: commands.WriteHeartbeat) -> None:
    """Write that a server is live."""
    state.house.beat(command.server, state.now)


def remove_server(state: StoreState, command: commands.RemoveServer) -> None:
    """Remove the record of a server."""
    state.house.servers.pop(command.server_id, None)


def write_timings(state: StoreState, command: commands.WriteTimings) -> None:
    """Add counts to those that are kept."""
    state.house.add_timings(command.timings)


def write_audit(state: StoreState, command: commands.WriteAudit) -> None:
    """Keep what people did."""
    state.house.audit.extend(command.entries)


def set_moved(state: StoreState, command: commands.SetMoved) -> None:
    """Let the store take nothing new, or take jobs again."""
    state.house.moved = command.moved
    state.table.news.add(PAUSES)


def unpack(state: StoreState, command: commands.UnpackJobs) -> bool:
    """Enqueue the jobs of a parcel, if it is the next one of its move and queue."""
    parcel = command.parcel
    key = parcel.move, parcel.queue
    if not moving.is_next(parcel, state.house.parcels.get(key)):
        return False
    moving.unpack(state.table, parcel.packed, state.now)
    state.house.parcels[key] = Unpacked(parcel.number, [job.id for job in parcel.packed.jobs])
    return True


def let_go(state: StoreState, command: commands.DeleteMoved) -> bool:
    """Delete waiting jobs, unique keys by their names, values and schedules."""
    if not moving.goes_by(state.house.moved, command.move):
        return False
    for job_id in command.jobs:
        moving.let_go(state.table, job_id)
    for name in command.keys:
        state.table.holds.let_go(name)
    state.table.put_values(dict.fromkeys(command.kv))
    for schedule_id in command.schedules:
        state.schedules.remove(schedule_id)
    return True


def take_keys(state: StoreState, command: commands.TakeKeys) -> None:
    """Let these keys be held here until their time is over, those that are free."""
    for key in command.keys:
        state.table.holds.take_over(key, state.now)


COMMANDS: Final = table_of(
    commands.RenewClaims.by(renew),
    commands.WriteNotes.by(note),
    commands.CancelJobs.by(cancel),
    commands.RetryJobs.by(retry),
    commands.DeleteJobs.by(delete),
    commands.RescheduleJobs.by(reschedule),
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
    commands.SetMoved.by(set_moved),
    commands.UnpackJobs.by(unpack),
    commands.DeleteMoved.by(let_go),
    commands.TakeKeys.by(take_keys),
)
"""The function that executes each of them; `enqueue` and `settle` are apart, as they are methods of a store."""
