"""What operators and services do to jobs that they do not hold."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed, Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.core.topics import PAUSES
from windlass.kit.moves import moving, steering
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.moves.claim import promote_queue
from windlass.stores.slatedb.queues import Queue
from windlass.stores.slatedb.records import PARTS
from windlass.stores.slatedb.table import Table

PAGE: Final = 500
HISTORY: Final = [part for part in PARTS if part.field == "history"]


class CancelCall(NamedTuple):
    """Jobs to cancel, and which records stay."""

    ids: Sequence[JobId]
    retention: Retention


class RescheduleCall(NamedTuple):
    """Jobs, and when they are to run."""

    ids: Sequence[JobId]
    run_at: datetime | None


class PauseCall(NamedTuple):
    """A queue, and whether it gives claims."""

    queue: str
    paused: bool


class RescueCall(NamedTuple):
    """Which claims to take back, and which records stay."""

    request: RescueRequest
    retention: Retention


class PruneCall(NamedTuple):
    """Which records stay, and how many may go."""

    retention: Retention
    limit: int


async def cancel(table: Table, call: CancelCall) -> list[CancelOutcome]:
    """End waiting jobs, and flag running ones."""
    moving.refuse(table.moved)
    await table.read(call.ids)
    return [steering.cancel(table, job_id, call.retention, table.now) for job_id in call.ids]


async def retry(table: Table, ids: Sequence[JobId]) -> list[Changed]:
    """Give dead and cancelled jobs a full new budget."""
    moving.refuse(table.moved)
    await table.read(ids)
    return [steering.retry(table, job_id, table.now) for job_id in ids]


async def delete(table: Table, ids: Sequence[JobId]) -> list[Changed]:
    """Delete finished jobs."""
    await table.read(ids)
    return [steering.delete(table, job_id) for job_id in ids]


async def reschedule(table: Table, call: RescheduleCall) -> list[Changed]:
    """Let waiting jobs run at another time."""
    moving.refuse(table.moved)
    await table.read(call.ids)
    return [steering.reschedule(table, job_id, call.run_at, table.now) for job_id in call.ids]


async def set_paused(table: Table, call: PauseCall) -> None:
    """Stop or start giving claims from a queue."""
    moving.refuse(table.moved)
    queue = table.queue(call.queue)
    queue.set_paused(paused=call.paused)
    table.news.add(PAUSES if call.paused else queue.topic)


async def rescue(table: Table, call: RescueCall) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    request = call.request
    names = table.queues if request.queues is None else dict.fromkeys(request.queues)
    rescued: list[Rescued] = []
    for queue in [table.queues[name] for name in names if name in table.queues]:
        if queue.standing[State.RUNNING] and len(rescued) < request.limit:
            rescued += await _rescue_queue(table, queue, call, request.limit - len(rescued))
    return rescued


async def _rescue_queue(table: Table, queue: Queue, call: RescueCall, limit: int) -> list[Rescued]:
    request = call.request
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
        sound = [record for record in chosen if record.id not in table.damaged]
        rescued += [steering.rescue(table, record, request, call.retention, table.now) for record in sound]
        if len(places) < PAGE:
            break
        start = places[-1] + b"\0"
    return rescued


async def promote(table: Table, limit: int) -> int:
    """Make scheduled jobs that have come due pending."""
    done = 0
    for queue in list(table.queues.values()):
        promoted = await promote_queue(table, queue, limit - done) if done < limit else 0
        if promoted:
            table.news.add(queue.topic)
        done += promoted
    return done


async def prune(table: Table, call: PruneCall) -> int:
    """Delete finished records past their retention, the oldest first; return how many."""
    done = 0
    for queue in list(table.queues.values()):
        for state in ENDS:
            if queue.standing[state] and done < call.limit:
                done += await _prune(table, queue, state, call, call.limit - done)
    return done


async def _prune(table: Table, queue: Queue, state: State, call: PruneCall, limit: int) -> int:
    front = await table.front(keys.ends(queue.name, state), limit)
    over: list[bytes] = []
    for place in front.first(limit):
        ended = queue.standing[state] - len(over)
        if not steering.past_retention(
            keys.time_of(place), ended, queue=queue.name, state=state, retention=call.retention, now=table.now
        ):
            break
        over.append(place)
    found = await table.records(over, parts=())
    for record in found:
        table.remove(record)
    return len(found)
