"""What services do: they take back, promote and prune what is due."""

from datetime import datetime
from itertools import chain

from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.kit.moves import steering
from windlass.kit.moves.record import Record
from windlass.stores.memory.queues import Queue
from windlass.stores.memory.table import Table


def rescue(table: Table, request: RescueRequest, retention: Retention, now: datetime) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    names = table.queues if request.queues is None else dict.fromkeys(request.queues)
    queues = [table.queues[name] for name in names if name in table.queues]
    until = None if request.force else now
    rescued: list[Rescued] = []
    for record in chain.from_iterable(queue.leases.until(until) for queue in queues):
        if len(rescued) >= request.limit:
            break
        if request.workers is None or record.worker in request.workers:
            rescued.append(steering.rescue(table, record, request, retention, now))
    return rescued


def promote(table: Table, limit: int, now: datetime) -> int:
    """Make scheduled jobs that have come due pending."""
    done = 0
    for queue in table.queues.values():
        promoted = queue.promote(now, limit - done)
        if promoted:
            table.news.add(queue.topic)
        done += promoted
    return done


def prune(table: Table, retention: Retention, limit: int, now: datetime) -> int:
    """Delete finished records past their retention, the oldest first; return how many."""
    done = 0
    for queue in table.queues.values():
        for state in ENDS:
            while done < limit and (record := _past_retention(queue, state, retention, now)) is not None:
                table.remove(record)
                done += 1
    return done


def _past_retention(queue: Queue, state: State, retention: Retention, now: datetime) -> Record | None:
    ended = queue.ends[state]
    first = ended.first()
    if first is None or first.finished_at is None:
        return None
    over = steering.past_retention(
        first.finished_at, ended.members, queue=queue.name, state=state, retention=retention, now=now
    )
    return first if over else None
