"""What operators and services do to jobs that they do not hold."""

from dataclasses import dataclass
from typing import Final

from windlass.core.commands import (
    CancelJobs,
    DeleteJobs,
    PromoteJobs,
    RescheduleJobs,
    RescueClaims,
    RetryJobs,
    SetQueueSettings,
)
from windlass.core.requests import CancelOutcome, Changed, Rescued
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.core.store_calls import Command, RepeatSafety
from windlass.core.topics import FLAGS, PAUSES
from windlass.core.verdict import LEASE_EXPIRED
from windlass.kit.moves import steering
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import RESCUED
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.moves.claim import promote_queue
from windlass.stores.slatedb.queues import Queue
from windlass.stores.slatedb.records import PARTS
from windlass.stores.slatedb.table import Table

PAGE: Final = 500
HISTORY: Final = [part for part in PARTS if part.field == "history"]


@dataclass(frozen=True, slots=True)
class PruneJobs(Command[int]):
    """Delete up to `limit` finished jobs past their retention; return how many."""

    retention: Retention
    limit: int
    repeat = RepeatSafety.SAME


async def cancel(table: Table, command: CancelJobs) -> list[CancelOutcome]:
    """End waiting jobs, and flag running ones."""
    await table.find(command.ids)
    return [steering.cancel(table, job_id, command.retention, table.now) for job_id in command.ids]


async def retry(table: Table, command: RetryJobs) -> list[Changed]:
    """Give dead and cancelled jobs a full new budget."""
    await table.find(command.ids)
    await table.mend(command.ids)
    return [steering.retry(table, job_id, table.now) for job_id in command.ids]


async def delete(table: Table, command: DeleteJobs) -> list[Changed]:
    """Delete finished jobs."""
    await table.find(command.ids)
    return [steering.delete(table, job_id) for job_id in command.ids]


async def reschedule(table: Table, command: RescheduleJobs) -> list[Changed]:
    """Let waiting jobs run at another time."""
    await table.find(command.ids)
    return [steering.reschedule(table, job_id, command.run_at, table.now) for job_id in command.ids]


async def set_queue_settings(table: Table, command: SetQueueSettings) -> None:
    """Set settings of a queue, such as whether it gives claims."""
    queue = table.queue(command.queue)
    queue.set_settings(queue.settings.changed(command.settings, command.layer))
    if command.settings.paused is not None:
        table.news.add(PAUSES if command.settings.paused else queue.topic)


async def rescue(table: Table, command: RescueClaims) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    request = command.request
    names = table.queues if request.queues is None else dict.fromkeys(request.queues)
    rescued: list[Rescued] = []
    for queue in [table.queues[name] for name in names if name in table.queues]:
        if queue.standing[State.RUNNING] and len(rescued) < request.limit:
            rescued += await _rescue_queue(table, queue, command, request.limit - len(rescued))
    return rescued


async def _rescue_queue(table: Table, queue: Queue, command: RescueClaims, limit: int) -> list[Rescued]:
    request = command.request
    index = keys.leases(queue.name)
    front = await table.front(index, 1)
    start = front.keys[0] if front.keys else keys.after(index)
    end = keys.after(index) if request.force else index + keys.number(keys.micros(table.now) + 1)
    rescued: list[Rescued] = []
    # from the first that is there: what stood before it has left marks behind
    while start < end and len(rescued) < limit:
        places = [place for place, _ in await table.scan(start, end, limit=PAGE)]
        held = await table.records(places, parts=())
        meant = [record for record in held if request.workers is None or record.worker in request.workers]
        chosen = meant[: limit - len(rescued)]
        await table.find([record.id for record in chosen], parts=HISTORY)
        rescued += [_rescue(table, record, command) for record in chosen]
        if len(places) < PAGE:
            break
        start = places[-1] + b"\0"
    return rescued


def _rescue(table: Table, record: Record, command: RescueClaims) -> Rescued:
    """Take one claim back; a damaged job becomes dead."""
    if record.damage is None:
        return steering.rescue(table, record, command.request, command.retention, table.now)
    table.stops_running(record, table.now, "rescued", LEASE_EXPIRED)
    table.queue(record.queue).count(RESCUED, record.kind, table.now)
    table.news.add(FLAGS)
    record.token = None
    table.set_aside(record)
    return Rescued(record.id, State.DEAD)


async def promote(table: Table, command: PromoteJobs) -> int:
    """Make scheduled jobs that have come due pending."""
    done, limit = 0, command.limit
    for queue in list(table.queues.values()):
        promoted = await promote_queue(table, queue, limit - done) if done < limit else 0
        if promoted:
            table.news.add(queue.topic)
        done += promoted
    return done


async def prune(table: Table, command: PruneJobs) -> int:
    """Delete finished records past their retention, the oldest first; return how many."""
    done = 0
    for queue in list(table.queues.values()):
        for state in ENDS:
            if queue.standing[state] and done < command.limit:
                done += await _prune(table, queue, state, command.retention, command.limit - done)
    return done


async def _prune(table: Table, queue: Queue, state: State, retention: Retention, limit: int) -> int:
    front = await table.front(keys.ends(queue.name, state), limit)
    over: list[bytes] = []
    for place in front.first(limit):
        ended = queue.standing[state] - len(over)
        if not steering.past_retention(
            keys.time_of(place), ended, queue=queue.name, state=state, retention=retention, now=table.now
        ):
            break
        over.append(place)
    found = await table.records(over, parts=())
    for record in found:
        table.remove(record)
    return len(found)
