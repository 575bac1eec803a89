"""What is asked and told about queues and their minutes."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta

from windlass.api.calls import (
    MOST_JOBS,
    NamesTold,
    Nothing,
    empty_request,
    names_reply,
    names_response,
    nothing_reply,
    nothing_response,
)
from windlass.api.carried_call import AuditedChange, PlainCall, merged, pages_of
from windlass.api.looks import (
    Minute,
    Queue,
    Waiting,
    minute_of,
    minute_told,
    queue_of,
    queue_told,
    waiting_of,
    waiting_told,
)
from windlass.api.shape import Asked, Moment, Name, Told, seconds, span
from windlass.core.commands import SetQueueSettings
from windlass.core.duration import moment
from windlass.core.names import check_name
from windlass.core.queries import CountWaiting, GetDueTime, GetMinutes, GetQueueSettings, GetStats, ListKinds
from windlass.core.queue_settings import StoredSettings


class QueuesAsked(Asked, kw_only=True):
    """All queues, or one."""

    queue: Name | None = None


class QueuesTold(Told, kw_only=True):
    """The queues, in order of name."""

    queues: list[Queue]


class QueueAsked(Asked, kw_only=True):
    """One queue."""

    queue: Name


class NamesAsked(Asked, kw_only=True):
    """Queues by name."""

    queues: Annotated[list[Name], Meta(max_length=MOST_JOBS)]


class DueTold(Told, kw_only=True):
    """Seconds until the next scheduled job comes due: zero when one is due, null when there is none."""

    due_in: float | None = None


class KindsAsked(Asked, kw_only=True):
    """A queue, and the kinds that are known already."""

    queue: Name
    known: list[Name] = []


class WaitingTold(Told, kw_only=True):
    """The pending jobs by queue and kind, in that order."""

    waiting: list[Waiting]


class MinutesAsked(Asked, kw_only=True):
    """From `since` up to, not including, `until`."""

    since: Moment
    until: Moment


class MinutesTold(Told, kw_only=True):
    """What happened in each minute."""

    minutes: list[Minute]


def _pause_audit(command: SetQueueSettings, reply: None) -> AuditedChange:
    del reply
    return AuditedChange("pause" if command.settings.paused else "resume", command.queue)


def _paused_queues(query: GetQueueSettings, found: Mapping[str, StoredSettings]) -> NamesTold:
    return NamesTold(names=[queue for queue in query.queues if queue in found and found[queue].paused])


def _earliest(replies: Sequence[timedelta | None]) -> timedelta | None:
    return min((each for each in replies if each is not None), default=None)


def _names(queues: Sequence[str]) -> list[str]:
    return [check_name(queue, "queue") for queue in queues]


QUEUES: Final = PlainCall(
    GetStats,
    QueuesAsked,
    QueuesTold,
    request=lambda query: QueuesAsked(queue=query.queue),
    read=lambda asked: GetStats(None if asked.queue is None else check_name(asked.queue, "queue")),
    response=lambda _, rows: QueuesTold(queues=[queue_told(row) for row in rows]),
    reply=lambda told: [queue_of(one) for one in told.queues],
)
PAUSE: Final = PlainCall(
    SetQueueSettings,
    QueueAsked,
    Nothing,
    request=lambda command: QueueAsked(queue=command.queue),
    read=lambda asked: SetQueueSettings(check_name(asked.queue, "queue"), StoredSettings(paused=True)),
    response=nothing_response,
    reply=nothing_reply,
    audit=_pause_audit,
)
RESUME: Final = PlainCall(
    SetQueueSettings,
    QueueAsked,
    Nothing,
    request=lambda command: QueueAsked(queue=command.queue),
    read=lambda asked: SetQueueSettings(check_name(asked.queue, "queue"), StoredSettings(paused=False)),
    response=nothing_response,
    reply=nothing_reply,
    audit=_pause_audit,
)
PAUSED: Final = PlainCall(
    GetQueueSettings,
    NamesAsked,
    NamesTold,
    request=lambda query: NamesAsked(queues=list(query.queues)),
    read=lambda asked: GetQueueSettings(_names(asked.queues)),
    response=_paused_queues,
    reply=lambda told: {queue: StoredSettings(paused=True) for queue in told.names},
    parts=pages_of("queues", merged),
)
DUE_IN: Final = PlainCall(
    GetDueTime,
    NamesAsked,
    DueTold,
    request=lambda query: NamesAsked(queues=list(query.queues)),
    read=lambda asked: GetDueTime(_names(asked.queues)),
    response=lambda _, due_in: DueTold(due_in=seconds(due_in)),
    reply=lambda told: span(told.due_in),
    parts=pages_of("queues", _earliest),
)
KINDS: Final = PlainCall(
    ListKinds,
    KindsAsked,
    NamesTold,
    request=lambda query: KindsAsked(queue=query.queue, known=list(query.known)),
    read=lambda asked: ListKinds(
        known=[check_name(kind, "kind") for kind in asked.known], queue=check_name(asked.queue, "queue")
    ),
    response=names_response,
    reply=names_reply,
)
WAITING: Final = PlainCall(
    CountWaiting,
    Nothing,
    WaitingTold,
    request=empty_request,
    read=lambda _: CountWaiting(),
    response=lambda _, rows: WaitingTold(waiting=[waiting_told(row) for row in rows]),
    reply=lambda told: [waiting_of(one) for one in told.waiting],
)
MINUTES: Final = PlainCall(
    GetMinutes,
    MinutesAsked,
    MinutesTold,
    request=lambda query: MinutesAsked(since=query.since, until=query.until),
    read=lambda asked: GetMinutes(moment(asked.since, "since"), moment(asked.until, "until")),
    response=lambda _, rows: MinutesTold(minutes=[minute_told(row) for row in rows]),
    reply=lambda told: [minute_of(one) for one in told.minutes],
)
