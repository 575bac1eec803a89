"""Pending calls on their way to the dispatcher, and replies on their way back."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from windlass.core.commands import EnqueueJobs, SettleClaims, WriteKv
from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.store_calls import StoreCall
from windlass.stores.slatedb.commands import STEPS
from windlass.stores.slatedb.moves import claim
from windlass.stores.slatedb.queries import QUERIES

RANKS: Final[Mapping[type[StoreCall[Any]], int]] = {call: rank for rank, call in enumerate((*STEPS, *QUERIES))}
"""The place of each kind of call among those that are served together: queries of a snapshot come last."""
_FIRST_READ: Final = len(STEPS)


class PendingCall:
    """A command or query that is to be executed. Without a future no caller waits for it.

    One that `is_read` is executed on a snapshot, and not in the step of the dispatcher.
    """

    __slots__ = ("future", "is_read", "loop", "rank", "request_id", "since", "tries", "value")

    def __init__(
        self,
        value: StoreCall[Any],
        future: "asyncio.Future[Any] | None" = None,
        *,
        request_id: str | None = None,
        tries: int = 0,
    ) -> None:
        """Wait since now; made in vain `tries` times before."""
        self.value = value
        # a call that is in no table fails here, in its caller, and not in the dispatcher
        self.rank = RANKS[type(value)]
        self.is_read = self.rank >= _FIRST_READ
        self.future = future
        self.request_id = request_id
        self.loop = None if future is None else future.get_loop()
        self.since = time.monotonic()
        self.tries = tries

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future is not None and self.future.cancelled()

    def was_in_vain(self, result: Any) -> bool:  # noqa: ANN401 - as of any call
        """Whether nobody waits for it, and it was not done this time although it can be later."""
        return self.future is None and isinstance(result, StoreUnavailable) and result.retryable

    def in_doubt(self, error: WindlassError) -> WindlassError:
        """Return the error of a caller whose call was made, and may become durable yet."""
        # the caller can repeat these under the id of the job
        match self.value:
            case SettleClaims([first, *_]):
                doubt = first.job_id
            case EnqueueJobs([first, *_]):
                doubt = first.id
            case _:
                return error
        if isinstance(error, Fenced):
            return error
        unknown = OutcomeUnknown(doubt)
        unknown.__cause__ = error
        return unknown

    @property
    def job_ids(self) -> Iterable[JobId]:
        """The jobs that are read together with those of the other calls."""
        match self.value:
            case SettleClaims():
                return (settlement.job_id for settlement in self.value.settlements)
            case EnqueueJobs():
                return (job.id for job in self.value.jobs)
            case claim.GiveBackClaims():
                return (given.job.id for given in self.value.given)
            case _:
                return ()

    @property
    def weight(self) -> int:
        """The bytes that it brings, about; none for one that brings but a few."""
        match self.value:
            case SettleClaims():
                return sum(map(claim.weight, self.value.settlements))
            case EnqueueJobs():
                return sum(len(job.payload) for job in self.value.jobs)
            case WriteKv():
                return len(self.value.write.value or b"")
            case _:
                return 0


Answer: TypeAlias = tuple[PendingCall, Any]


def _nothing(call: PendingCall, result: Any) -> None:  # noqa: ANN401 - as of any call
    """Do nothing for a caller who has gone."""


def answer(answers: Collection[Answer], given_up: Callable[[PendingCall, Any], None] = _nothing) -> None:
    """Give each caller its answer, in the event loop that it waits in; `given_up` is told of what is for nobody."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Answer]] = defaultdict(list)
    for one in answers:
        call, result = one
        if call.cancelled or call.was_in_vain(result):
            given_up(call, result)
        elif call.loop is not None:
            by_loop[call.loop].append(one)
    for loop, those in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver, those, given_up)
        except RuntimeError:
            # that loop was closed meanwhile, with whoever waited in it
            for call, result in those:
                given_up(call, result)


def _deliver(answers: list[Answer], given_up: Callable[[PendingCall, Any], None]) -> None:
    for call, result in answers:
        future = call.future
        if future is None or future.done():
            given_up(call, result)
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
