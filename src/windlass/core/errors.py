"""Every error that Windlass raises.

WindlassError
├── InvalidValue (also ValueError)      an argument that cannot mean anything
│   ├── InvalidName                     a name with a character, or of a length, that is not allowed
│   ├── InvalidURL                      a store URL that cannot be read
│   ├── PayloadTooLarge                 a payload or a result over the limit
│   └── ValueTooLarge                   a kv value or a header over the limit
├── MissingExtra (also ImportError)     a URL or a command needs packages that are not installed
├── AppNotLoaded                        the app of a command could not be imported
├── EncodeError (also TypeError)        a value the codec does not take
├── DecodeError                         stored bytes that do not decode
├── UnknownKind                         a job whose kind no handler is registered for
├── TenantNotFound                      a tenant that the scope provider does not know
├── AlreadyRunning                      a second start of what runs already
├── NoCurrentJob                        `current()` outside of a handler
├── ClientClosed                        a call on a client after its close
├── ClaimLost                           a settlement, renewal or note with a token that no longer holds
├── JobConflict                         a job that cannot be enqueued beside one that is here
│   ├── IdConflict                      an id that a job of another queue, kind or tenant has
│   └── UniqueConflict                  a unique key that another job holds
├── JobNotFound                         no job has this id
├── ScheduleNotFound                    no schedule has this id
├── WrongState                          the job is not in a state that allows the call
├── JobDead, JobCancelled, ResultNotKept    why there is no result
├── LockLost                            a named lock was taken over while its holder slept
├── NotTransactional                    `connection=` on a store without transactions
├── NotAtomicHere                       a call that would need two queues at once, on a store that spreads them
├── OutcomeUnknown                      the reply was lost, and asking again did not tell
└── StoreUnavailable                    not done, or not known to be; `retryable` says whether trying again can help
    ├── StoreCorrupt                    not a database, or a damaged one
    ├── StoreReadOnly                   the file or the server refuses writes
    ├── StoreFull                       no room left
    ├── NotAllowed                      the token of a client over HTTP does not allow it
    ├── StoreOwned                      another process owns the store
    ├── StoreMoved                      the jobs live elsewhere now
    ├── SchemaMissing, SchemaTooOld, SchemaTooNew    the schema is not the one that this release works with
    └── Fenced                          another process has taken the store over
"""

import difflib
from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal


class WindlassError(Exception):
    """The root of every error that Windlass raises."""


class InvalidValue(WindlassError, ValueError):
    """An argument that cannot mean anything; nothing was written."""


class InvalidName(InvalidValue):
    """A queue, kind, key or other name that is empty, too long or has a character that is not allowed."""

    def __init__(self, what: str, name: object, problem: str) -> None:
        super().__init__(
            f"{what} {_shortened(name)} {problem}: use 1 to 200 ASCII letters, digits or any of _ - . : / @ #",
        )
        self.what = what
        self.name = name


class InvalidURL(InvalidValue):
    """A store URL that cannot be read; the message never shows a password in it."""


class PayloadTooLarge(InvalidValue):
    """A payload or a result over the limit; nothing was written."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} of {size:,} bytes is over the limit of {limit:,}: store the data elsewhere and enqueue "
            "a reference to it, or raise max_payload",
        )
        self.size = size
        self.limit = limit


class ValueTooLarge(InvalidValue):
    """A kv value or a header over its limit; nothing was written."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} of {size:,} bytes is over the limit of {limit:,}: store it elsewhere, keep a reference"
        )
        self.size = size
        self.limit = limit


class MissingExtra(WindlassError, ImportError):
    """A URL or a command needs packages that are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'windlass[{extra}]'")
        self.what = what
        self.extra = extra


class AppNotLoaded(WindlassError):
    """The app that a command is to work with could not be imported; `traceback` is of its own code, if that raised."""

    def __init__(self, message: str, traceback: str | None = None) -> None:
        super().__init__(message)
        self.traceback = traceback


class EncodeError(WindlassError, TypeError):
    """A value that the codec does not take; nothing was written."""


class DecodeError(WindlassError):
    """Stored bytes that do not decode to what was asked for; `path` leads to the bad value."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class UnknownKind(WindlassError):
    """A job was claimed whose kind no handler is registered for."""

    def __init__(self, kind: str, known: Collection[str]) -> None:
        near = difflib.get_close_matches(kind, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "import its module where the app is made"
        if known and not near:
            advice += f"; the kinds here are {', '.join(sorted(known)[:10])}{', ...' * (len(known) > 10)}"  # noqa: PLR2004
        super().__init__(f"no handler for job kind {kind!r}: {advice}")
        self.kind = kind


class TenantNotFound(WindlassError):
    """The scope provider does not know the tenant of a job."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"tenant {tenant!r} is not known here: create it, or cancel its jobs")
        self.tenant = tenant


class AlreadyRunning(WindlassError):
    """A second start of what runs already."""


class NoCurrentJob(WindlassError):
    """`current()` was called where no handler runs."""

    def __init__(self) -> None:
        super().__init__("no job runs here: windlass.current() works inside of a handler, and in what it calls")


class ClientClosed(WindlassError):
    """A call on a client after its close."""

    def __init__(self) -> None:
        super().__init__("this client is closed: open a new one with windlass.connect(url)")


class ClaimLost(WindlassError):
    """The claim no longer holds its job: it was rescued, settled by another, or ended by an operator.

    Nothing was changed. The work may be running again elsewhere, so its effects must be left as they are.
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"the claim on job {job_id} is lost: its lease ran out and the job was rescued, or it was settled "
            "already; nothing was written, so stop working on it",
        )
        self.job_id = job_id


class JobConflict(WindlassError):
    """A job cannot be enqueued beside a job that is in the store already; nothing was written."""


class IdConflict(JobConflict):
    """A job of another queue, kind or tenant has the id already, so this one was not enqueued.

    `queue`, `kind` and `tenant` are those of the refused job. The error says nothing about the job that has the id.
    """

    def __init__(self, job_id: str, queue: str, kind: str | None, tenant: str | None) -> None:
        wanted = f"queue {queue!r}, {f'kind {kind!r}' if kind else 'no kind'} and "
        wanted += f"tenant {tenant!r}" if tenant else "no tenant"
        super().__init__(
            f"job id {job_id} is taken by a job other than one of {wanted}: give each job an id of its own; "
            "only a repeat with the same queue, kind and tenant finds the job that is here",
        )
        self.job_id = job_id
        self.queue = queue
        self.kind = kind
        self.tenant = tenant


class UniqueConflict(JobConflict):
    """A unique key is held by another job, or by the same key with another payload."""

    _ADVICE: Final = {
        "held": ": wait for that job, or use on_conflict='keep'",
        "payload": " with another payload: use another key, or send the same payload",
        "claimed": ", which no longer waits and cannot be replaced: wait for that job, or use on_conflict='keep'",
    }

    def __init__(self, key: str, job_id: str | None, why: Literal["held", "payload", "claimed"] = "held") -> None:
        holder = f"job {job_id}" if job_id else "another job"
        super().__init__(f"unique key {key!r} is held by {holder}{self._ADVICE[why]}")
        self.key = key
        self.job_id = job_id
        self.why: Literal["held", "payload", "claimed"] = why


class JobNotFound(WindlassError):
    """No job has this id, or its record was pruned."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"no job {job_id} here: the id is wrong, or it was deleted, or pruned after its retention")
        self.job_id = job_id


class ScheduleNotFound(WindlassError):
    """No schedule has this id."""

    def __init__(self, schedule_id: str, known: Collection[str] = ()) -> None:
        near = difflib.get_close_matches(schedule_id, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "`windlass schedules` lists those that are here"
        super().__init__(f"no schedule {schedule_id!r} here: {advice}")
        self.schedule_id = schedule_id


class WrongState(WindlassError):
    """The job is not in a state that allows the call."""

    def __init__(self, job_id: str, state: str, needed: str) -> None:
        super().__init__(f"job {job_id} is {state}; this needs one that is {needed}")
        self.job_id = job_id
        self.state = state


class JobDead(WindlassError):
    """The job has no result because it is dead; `job` is its record."""

    def __init__(self, job: object, reason: str | None) -> None:
        super().__init__(f"the job is dead: {reason or 'no reason was stored'}")
        self.job = job


class JobCancelled(WindlassError):
    """The job has no result because it was cancelled."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} was cancelled")
        self.job_id = job_id


class ResultNotKept(WindlassError):
    """The job succeeded, and its record went with its end."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} succeeded but its record was not kept: set keep_succeeded to keep results")
        self.job_id = job_id


class LockLost(WindlassError):
    """A named lock expired while it was held and may be with another holder now."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"lock {name!r} was lost: it could not be renewed within its ttl; undo or stop what it guarded"
        )
        self.name = name


class NotTransactional(WindlassError):
    """`connection=` on a store that has no transactions to join."""

    def __init__(self, store: str, instead: str = "use a SQL store") -> None:
        super().__init__(
            f"{store} has no transactions: leave connection= out and settle without transaction(), or {instead}"
        )


class NotAtomicHere(WindlassError):
    """A call that would need two queues at once, on a store that spreads its queues."""

    def __init__(self, what: str, instead: str = "make a call for each queue") -> None:
        super().__init__(
            f"{what} would need two queues at once, and this store spreads its queues: {instead}, or leave "
            "?spread=queues out of the URL"
        )


class OutcomeUnknown(WindlassError):
    """The reply was lost and asking again did not tell: the call may or may not have been done."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"it is not known whether job {job_id} was written: repeat the call, an enqueue with that id and a "
            "settlement with its token, and it is done once"
        )
        self.job_id = job_id


class StoreUnavailable(WindlassError):
    """The store did not say that it is done; `retryable` says whether trying again can help.

    Where it did not answer, the call may have been done all the same, or be done later: an enqueue and a settlement
    raise `OutcomeUnknown` then. Such a claim goes back by itself; a renewal, a value or a lock may be repeated.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreCorrupt(StoreUnavailable):
    """The file is not a database, or it or a stored record is damaged. Windlass leaves it as it is.

    `job_id` is the job whose record is damaged, when it is no more than that.
    """

    def __init__(self, message: str, *, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class StoreReadOnly(StoreUnavailable):
    """The file or the server refuses writes."""


class StoreFull(StoreUnavailable):
    """There is no room left; the call can be repeated when there is."""


class NotAllowed(StoreUnavailable):
    """The serving side refuses: there is no token, it is not known, or it does not allow the call."""


class StoreOwned(StoreUnavailable):
    """Another process owns the store."""

    def __init__(self, owner: str, since: datetime) -> None:
        super().__init__(
            f"the store is owned by {owner} since {since:%Y-%m-%d %H:%M:%S} UTC: stop that process, or work through "
            "`windlass serve`; if it is gone, try again in 10 s. ?take_over=1 takes the store from it",
            retryable=True,
        )
        self.owner = owner
        self.since = since


class StoreMoved(StoreUnavailable):
    """The jobs of this store live elsewhere now."""

    def __init__(self, to: str) -> None:
        super().__init__(f"this store was moved: connect to {to}")
        self.to = to


class SchemaMissing(StoreUnavailable):
    """The store has no Windlass schema: making one is forbidden by `?create=no`, or somebody has dropped it."""


class SchemaTooOld(StoreUnavailable):
    """The store's schema is older than this release works with."""


class SchemaTooNew(StoreUnavailable):
    """The store's schema is newer than this release knows; it was not touched."""

    def __init__(self, store: str, found: int, known: int) -> None:
        super().__init__(
            f"{store} has schema version {found} and this release knows {known}: upgrade windlass; nothing was changed",
        )
        self.found = found
        self.known = known


class Fenced(StoreUnavailable):
    """Another process has taken the store over; this one must stop.

    What was under way at that moment may or may not have been written; nothing that began after it was.
    """


def _shortened(name: object, most: int = 60) -> str:
    text = repr(name)
    return text if len(text) <= most else text[: most - 1] + "…"
