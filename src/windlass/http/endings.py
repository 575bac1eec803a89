"""How claims ended, as callers send it, becomes what the store settles."""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from msgspec import UnsetType, ValidationError

from windlass.api.claims import Ack, Cancel, DeadLetter, Ending, Nack, Release, Retry, Snooze
from windlass.api.jobs import Failure, is_json
from windlass.api.shape import kv_of
from windlass.client.client import Client
from windlass.client.failure import cut, cut_traceback
from windlass.client.prepare import checked_kv
from windlass.codec import Encoded
from windlass.core import job as core
from windlass.core.duration import duration
from windlass.core.errors import DecodeError
from windlass.core.ids import JobId, job_id
from windlass.core.job import Job, Token
from windlass.core.names import check_name
from windlass.core.requests import Settlement
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.verdict import (
    Raised,
    ToCancelled,
    ToDead,
    ToReleased,
    ToRetry,
    ToSnoozed,
    ToSucceeded,
    Verdict,
    verdict,
)
from windlass.http.asked import unfit
from windlass.http.auth import Identity
from windlass.http.new_jobs import as_given, check_origin, prepared_jobs

_ENDS: Final[Mapping[type[Verdict], State]] = {
    ToSucceeded: State.SUCCEEDED,
    ToDead: State.DEAD,
    ToCancelled: State.CANCELLED,
}


class Endings:
    """Makes settlements by the settings of the serving client: its retry policies and what it keeps."""

    def __init__(self, client: Client, retention: Retention, identity: Identity) -> None:
        self._client = client
        self._retention = retention
        self._identity = identity

    def needed(self, endings: Sequence[Ending]) -> list[JobId]:
        """Return the jobs that must be read first: where the policy decides, or what is kept differs by queue."""
        return [job_id(each.id) for each in endings if self._needs_job(each)]

    def settlement(self, ending: Ending, job: Job | None) -> Settlement:
        """Return what is to be settled; `job` is the job if it was to be read and is there."""
        decided = self._verdict(ending, job)
        known = job_id(ending.id)
        then = prepared_jobs(self._client.preparer, ending.then, known) if ending.then else ()
        check_origin(self._identity, then, parent_id=known)
        kv = None if ending.kv is None else checked_kv(as_given(kv_of(ending.kv)))
        if isinstance(ending, Nack) and isinstance(decided, ToRetry):
            # they come with the end of the job, and this is not it
            then, kv = (), None
        return Settlement(known, Token(ending.token), decided, self._keeps(ending, decided, job), then, kv)

    def _needs_job(self, ending: Ending) -> bool:
        return isinstance(ending, Nack | Retry) or (ending.keep is None and bool(self._retention.queues))

    def _verdict(self, ending: Ending, job: Job | None) -> Verdict:
        match ending:
            case Ack():
                return ToSucceeded(*self._result(ending))
            case Nack(error=error, delay=delay):
                return self._after_failure(job, _failure(error), delay)
            case Retry(error=error, delay=delay):
                # by whoever ran it, but no more often than the job allows
                return self._after_failure(job, _failure(error), delay)
            case DeadLetter(error=error):
                return ToDead(_failure(error))
            case Snooze(delay=delay):
                return ToSnoozed(duration(delay, "delay"))
            case Release(started=started):
                return ToReleased(started)
            case Cancel(reason=reason):
                return ToCancelled(cut(reason))
            case _:
                assert_never(ending)

    def _result(self, ending: Ack) -> tuple[bytes | None, str | None]:
        try:
            carried = ending.carried()
        except ValidationError as error:
            raise unfit(error) from None
        if carried is None:
            return None, None
        data, codec = carried
        if not isinstance(ending.result, UnsetType) and not is_json(data):
            message = "result is no JSON that every reader understands, such as one with a number out of all range"
            raise DecodeError(message, "$.result")
        return self._client.preparer.encode(Encoded(data, check_name(codec, "codec")), "result")

    def _after_failure(self, job: Job | None, failure: core.Failure, delay: float | None) -> Verdict:
        if job is None:
            # its claim is lost, or the request was settled before: the store answers either without this verdict
            return ToDead(failure)
        after = None if delay is None else duration(delay, "delay")
        retry = self._client.settings.of(job.queue).retry
        return verdict(job, Raised(failure, None, after), retry=retry, draw=self._client.rng.random())

    def _keeps(self, ending: Ending, decided: Verdict, job: Job | None) -> bool:
        if ending.keep is not None:
            return ending.keep
        end = _ENDS.get(type(decided))
        return end is None or self._retention.keeps("" if job is None else job.queue, end)


def _failure(error: str | Failure) -> core.Failure:
    if isinstance(error, str):
        return core.Failure(cut(error))
    return core.Failure(
        cut(error.message),
        None if error.type is None else cut(error.type),
        None if error.traceback is None else cut_traceback(error.traceback),
        None if error.module is None else cut(error.module),
    )
