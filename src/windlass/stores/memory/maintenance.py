"""Maintenance of a store in memory: rescue, promotion and pruning."""

from datetime import datetime
from itertools import chain

from windlass.core.commands import PromoteJobs, PruneRecords, RescueClaims
from windlass.core.requests import Rescued
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.kit.moves import steering
from windlass.kit.moves.record import Record
from windlass.stores.memory.atomic_step import MemoryState
from windlass.stores.memory.queues import Queue


def rescue(state: MemoryState, command: RescueClaims) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    table, request, now = state.table, command.request, state.now
    names = table.queues if request.queues is None else dict.fromkeys(request.queues)
    queues = [table.queues[name] for name in names if name in table.queues]
    until = None if request.force else now
    rescued: list[Rescued] = []
    for record in chain.from_iterable(queue.leases.until(until) for queue in queues):
        if len(rescued) >= request.limit:
            break
        if request.workers is None or record.worker in request.workers:
            rescued.append(steering.rescue(table, record, request, command.retention, now))
    return rescued


def promote(state: MemoryState, command: PromoteJobs) -> int:
    """Make scheduled jobs that have come due pending."""
    done = 0
    for queue in state.table.queues.values():
        promoted = promote_queue(state, queue, command.limit - done)
        if promoted:
            state.table.news.add(queue.topic)
        done += promoted
    return done


def promote_queue(state: MemoryState, queue: Queue, limit: int | None = None) -> int:
    """Make scheduled jobs of a queue that have come due pending, the earliest first; return how many."""
    done = 0
    while done != limit and (record := queue.due.first()) is not None and record.run_at <= state.now:
        state.table.starts_waiting(record, State.PENDING, state.now, ring=False)
        done += 1
    return done


def prune(state: MemoryState, command: PruneRecords) -> int:
    """Delete finished records past their retention, the oldest first, and housekeeping records; count the jobs."""
    state.house.prune(state.table.holds, (queue.tally for queue in state.table.queues.values()), state.now)
    done = 0
    for queue in state.table.queues.values():
        for end in ENDS:
            while done < command.limit:
                record = _past_retention(queue, end, command.retention, state.now)
                if record is None:
                    break
                state.table.remove(record)
                done += 1
    return done


def _past_retention(queue: Queue, end: State, retention: Retention, now: datetime) -> Record | None:
    ended = queue.ends[end]
    first = ended.first()
    if first is None or first.finished_at is None:
        return None
    over = steering.past_retention(
        first.finished_at, ended.members, queue=queue.name, state=end, retention=retention, now=now
    )
    return first if over else None
