"""Commands about schedules, about what belongs to no queue, and about a move to another store."""

from dataclasses import replace
from typing import Any

from examples.dictionary_store.job_commands import add, enqueue_one
from examples.dictionary_store.tables import Record, Tables
from windlass.core import commands
from windlass.core.duration import later
from windlass.core.errors import IdConflict
from windlass.core.job import Job
from windlass.core.moving import HeldKey, Unpacked
from windlass.core.requests import KvAny
from windlass.core.schedule import Fired, FireOutcome, Schedule
from windlass.core.states import State
from windlass.core.topics import PAUSES, SCHEDULES, lock_topic


def write_schedule(tables: Tables, command: commands.WriteSchedule) -> int | None:
    schedule = command.schedule
    known = tables.schedules.get(schedule.id)
    if (None if known is None else known.revision) != command.expected:
        return None
    tables.ring(SCHEDULES)
    return put_schedule(tables, schedule).revision


def put_schedule(tables: Tables, schedule: Schedule, **fields: Any) -> Schedule:  # noqa: ANN401 - fields of a schedule
    tables.last_revision += 1
    written = replace(schedule, revision=tables.last_revision, orphaned=False, **fields)
    tables.schedules[schedule.id] = written
    return written


def remove_schedule(tables: Tables, command: commands.RemoveSchedule) -> bool:
    tables.ring(SCHEDULES)
    return tables.schedules.pop(command.schedule_id, None) is not None


def fire(tables: Tables, command: commands.FireSchedule) -> Fired:
    firing = command.firing
    schedule = tables.schedules.get(firing.schedule_id)
    if schedule is None:
        return Fired(FireOutcome.LOST)
    ticks = firing.tick is not None
    last = schedule.last_job_id
    if schedule.revision != firing.revision or (ticks and not is_due(tables, schedule)):
        return Fired(FireOutcome.LOST, last)
    next_run_at = firing.next_run_at if ticks else schedule.next_run_at
    before = None if last is None else tables.jobs.get(last)
    if schedule.overlap == "skip" and firing.jobs and before is not None and not before.job.state.finished:
        if ticks:
            put_schedule(tables, schedule, next_run_at=next_run_at)
        return Fired(FireOutcome.OVERLAPS, last)
    made = [enqueue_one(tables, job).id for job in firing.jobs]
    last_run_at = firing.tick if ticks and made else schedule.last_run_at
    last = made[-1] if made else last
    put_schedule(tables, schedule, next_run_at=next_run_at, last_run_at=last_run_at, last_job_id=last)
    return Fired(FireOutcome.DONE, last)


def is_due(tables: Tables, schedule: Schedule) -> bool:
    return not schedule.paused and schedule.next_run_at is not None and schedule.next_run_at <= tables.now


def write_kv(tables: Tables, command: commands.WriteKv) -> bool:
    write = command.write
    if not isinstance(write.expected, KvAny) and tables.kv.get(write.key) != write.expected:
        return False
    tables.write_kv({write.key: write.value})
    return True


def take_lock(tables: Tables, command: commands.TakeLock) -> bool:
    if lock_holder(tables, command.name) not in {None, command.holder}:
        return False
    tables.locks[command.name] = (command.holder, later(tables.now, command.ttl))
    return True


def free_lock(tables: Tables, command: commands.FreeLock) -> bool:
    if lock_holder(tables, command.name) != command.holder:
        return False
    del tables.locks[command.name]
    tables.ring(lock_topic(command.name))
    return True


def lock_holder(tables: Tables, name: str) -> str | None:
    holder, expires_at = tables.locks.get(name, (None, tables.now))
    return holder if expires_at > tables.now else None


def write_heartbeat(tables: Tables, command: commands.WriteHeartbeat) -> None:
    tables.servers[command.server.id] = replace(command.server, seen_at=tables.now)


def remove_server(tables: Tables, command: commands.RemoveServer) -> None:
    tables.servers.pop(command.server_id, None)


def write_timings(tables: Tables, command: commands.WriteTimings) -> None:
    for timing in command.timings:
        key = timing._replace(attempts=0)
        tables.timings[key] = tables.timings.get(key, 0) + timing.attempts


def write_audit(tables: Tables, command: commands.WriteAudit) -> None:
    tables.audit = [*tables.audit, *command.entries]


def set_moved(tables: Tables, command: commands.SetMoved) -> None:
    tables.moved = command.moved
    tables.ring(PAUSES)


def unpack(tables: Tables, command: commands.UnpackJobs) -> bool:
    parcel, packed = command.parcel, command.parcel.packed
    last = tables.unpacked.get((parcel.move, parcel.queue))
    if parcel.number != (1 if last is None else last.number + 1):
        return False
    keys = {key.job_id: key for key in packed.keys if tables.holder(key.name) is None}
    for job in packed.jobs:
        if (known := tables.jobs.get(job.id)) is None:
            unpack_one(tables, job, keys.get(job.id))
        elif (known.job.queue, known.job.kind, known.job.tenant) != (job.queue, job.kind, job.tenant):
            raise IdConflict(job.id, job.queue, job.kind, job.tenant)
    tables.unpacked[parcel.move, parcel.queue] = Unpacked(parcel.number, [job.id for job in packed.jobs])
    return True


def unpack_one(tables: Tables, job: Job, key: HeldKey | None) -> None:
    if key is not None:
        tables.keys[key.name] = key
    state = State.PENDING if job.run_at <= tables.now else job.state
    unique_key = None if key is None else job.unique_key
    add(tables, Record(job._replace(state=state, unique_key=unique_key), key))


def delete_moved(tables: Tables, command: commands.DeleteMoved) -> bool:
    if command.move is not None and (tables.moved is None or tables.moved.move != command.move):
        return False
    for job_id in command.jobs:
        record = tables.jobs.get(job_id)
        if record is not None and record.job.state.waiting:
            del tables.jobs[job_id]
            tables.keys = {name: key for name, key in tables.keys.items() if key.job_id != job_id}
    tables.keys = {name: key for name, key in tables.keys.items() if name not in command.keys}
    tables.write_kv(dict.fromkeys(command.kv))
    for schedule_id in command.schedules:
        tables.schedules.pop(schedule_id, None)
    return True


def take_keys(tables: Tables, command: commands.TakeKeys) -> None:
    for key in command.keys:
        if tables.holder(key.name) is None:
            tables.keys[key.name] = key
