"""Queues: counted, timed, paused and resumed."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, operations, queue_calls
from windlass.api.about import About
from windlass.api.looks import Minute, Totals, queue_told, waiting_told
from windlass.api.roles import Role
from windlass.api.shape import seconds
from windlass.api.timings import TimingsTold, TimingsWritten, timings_of, timings_told
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.core.stats import BOUNDS, TimingCount
from windlass.http.audit import write_down
from windlass.http.call import Call, Handled
from windlass.version import VERSION


async def about(call: Call[calls.Nothing]) -> About:
    """Tell what serves here, and who asks."""
    identity = call.identity
    return About(
        version=VERSION,
        serving=call.shared.id,
        atomic_across_queues=call.store.features.atomic_across_queues,
        name=identity.name,
        roles=[role for role in Role if role in identity.roles],
        queues=None if identity.queues is None else sorted(identity.queues),
    )


async def queues(call: Call[queue_calls.QueuesAsked]) -> queue_calls.QueuesTold:
    """Count jobs by queue and state."""
    queue = call.asked.queue
    rows = await call.store.stats(None if queue is None else check_name(queue, "queue"))
    return queue_calls.QueuesTold(queues=[queue_told(row) for row in rows])


async def pause(call: Call[queue_calls.QueueAsked]) -> calls.Nothing:
    """Give no claims from a queue."""
    return await _set_paused(call, paused=True)


async def resume(call: Call[queue_calls.QueueAsked]) -> calls.Nothing:
    """Give claims from a queue again."""
    return await _set_paused(call, paused=False)


async def _set_paused(call: Call[queue_calls.QueueAsked], *, paused: bool) -> calls.Nothing:
    queue = check_name(call.asked.queue, "queue")
    await call.store.set_paused(queue, paused=paused)
    await write_down(call, "pause" if paused else "resume", queue)
    return calls.Nothing()


async def paused(call: Call[queue_calls.NamesAsked]) -> calls.NamesTold:
    """Tell which of these queues are paused."""
    return calls.NamesTold(names=await call.store.paused(_names(call.asked.queues)))


async def due_in(call: Call[queue_calls.NamesAsked]) -> queue_calls.DueTold:
    """Tell when the next scheduled job comes due."""
    return queue_calls.DueTold(due_in=seconds(await call.store.due_in(_names(call.asked.queues))))


async def kinds(call: Call[queue_calls.KindsAsked]) -> calls.NamesTold:
    """Tell the kinds of the pending jobs of a queue."""
    known = [check_name(kind, "kind") for kind in call.asked.known]
    return calls.NamesTold(names=await call.store.kinds(check_name(call.asked.queue, "queue"), known))


async def waiting(call: Call[calls.Nothing]) -> queue_calls.WaitingTold:
    """Count the pending jobs by queue and kind."""
    return queue_calls.WaitingTold(waiting=[waiting_told(row) for row in await call.store.waiting()])


async def minutes(call: Call[queue_calls.MinutesAsked]) -> queue_calls.MinutesTold:
    """Tell what happened in each minute."""
    since, until = moment(call.asked.since, "since"), moment(call.asked.until, "until")
    rows = await call.store.minutes(since=since, until=until)
    return queue_calls.MinutesTold(
        minutes=[
            Minute(minute=row.minute, queue=row.queue, kind=row.kind, counts=Totals(**row.counts._asdict()))
            for row in rows
        ]
    )


async def timings(call: Call[queue_calls.MinutesAsked]) -> TimingsTold:
    """Tell how long attempts took in each minute."""
    since, until = moment(call.asked.since, "since"), moment(call.asked.until, "until")
    rows = await call.store.timings(since=since, until=until)
    return TimingsTold(bounds=list(BOUNDS), timings=timings_told(rows))


async def write_timings(call: Call[TimingsWritten]) -> calls.Nothing:
    """Add to the counts of how long attempts took."""
    await call.store.write_timings([_timing(row) for row in timings_of(call.asked.timings)])
    return calls.Nothing()


def _timing(row: TimingCount) -> TimingCount:
    minute = moment(row.minute, "minute")
    if minute.second or minute.microsecond:
        message = f"a minute begins at its first second, not at {minute.isoformat()}"
        raise InvalidValue(message)
    check_name(row.queue, "queue")
    if row.kind:
        check_name(row.kind, "kind")
    return row._replace(minute=minute)


def _names(queues: Sequence[str]) -> list[str]:
    return [check_name(queue, "queue") for queue in queues]


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.ABOUT, about),
    Handled(operations.QUEUES, queues),
    Handled(operations.PAUSE, pause),
    Handled(operations.RESUME, resume),
    Handled(operations.PAUSED, paused),
    Handled(operations.DUE_IN, due_in),
    Handled(operations.KINDS, kinds),
    Handled(operations.WAITING, waiting),
    Handled(operations.MINUTES, minutes),
    Handled(operations.TIMINGS, timings),
    Handled(operations.WRITE_TIMINGS, write_timings),
)
