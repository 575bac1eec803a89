"""A claim settled in the transaction that wrote its effects: fenced at its begin, acked at its end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, TypeVar

from windlass.borrow.borrow import borrow, borrow_back
from windlass.borrow.call import Call
from windlass.borrow.loan import Loan
from windlass.borrow.threads import for_threads
from windlass.client.client import Client
from windlass.core.clock import Timer
from windlass.core.errors import ClaimLost, InvalidValue, OutcomeUnknown, WindlassError
from windlass.core.job import Job, PreparedJob, Token
from windlass.core.joined_transaction import JoinedTransaction
from windlass.core.requests import Settled, Settlement
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.verdict import ToSucceeded
from windlass.engine.job_fields import fields_of

logger = logging.getLogger("windlass")

T = TypeVar("T")


class Held(Protocol):
    """A claim that is settled once, with what commits beside it."""

    job: Job
    token: Token
    settled: bool
    in_doubt: bool
    next_jobs: list[PreparedJob] | None
    kv_writes: dict[bytes, bytes | None] | None


class SettlingTransaction:
    """The transaction of one claim; see `Context.transaction`."""

    _loan: Loan
    _joined: JoinedTransaction

    def __init__(
        self,
        client: Client,
        claim: Held,
        connection: object,
        *,
        loop: asyncio.AbstractEventLoop,
        warn_after: timedelta,
        retention: Retention | None = None,
    ) -> None:
        """Work in `connection`, or in one of the store's own when it is None; `loop` is where `client` is open.

        `retention` says whether the record stays, as the settings of the client do by default.
        """
        self._retention = retention or client.settings.retention
        self._client = client
        self._claim = claim
        self._connection: Any = connection
        self._own = connection is None
        self._loop = loop
        self._warn_after = warn_after
        self._parts = AsyncExitStack()
        self._timer: Timer | None = None

    async def __aenter__(self) -> Any:  # noqa: ANN401 - the connection of whichever driver
        """Begin, check the claim and give the connection."""
        claim = self._claim
        if claim.settled:
            message = f"job {claim.job.id} is settled already: its transaction is the last step of a handler"
            raise InvalidValue(message)
        await self._begin()
        try:
            await self._fence()
        except BaseException as error:
            await self._end(error)
            raise
        self._timer = self._client.clock.call_later(self._warn_after.total_seconds(), self._warn)
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ack and commit, or roll back when the block raised."""
        if self._timer is not None:
            self._timer.cancel()
        if error is not None:
            await self._end(error)
            return
        try:
            await self._ack()
        except BaseException as refusal:
            await self._end(refusal)
            raise
        try:
            await self._end(None)
        except BaseException as failure:
            self._claim.settled = await self._was_committed(failure)
            if self._claim.settled and isinstance(failure, Exception):
                return
            if isinstance(failure, OutcomeUnknown) and isinstance(cause := failure.__cause__, WindlassError):
                # it is known now: it was not
                raise cause from cause.__cause__
            raise
        self._claim.settled = True

    def __enter__(self) -> Any:  # noqa: ANN401 - the connection of whichever driver
        """As `async with`, for a handler that runs in a thread."""
        connection = self._run(self.__aenter__)
        return for_threads(connection, self._run) if self._own else connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `async with`, for a handler that runs in a thread."""
        self._run(lambda: self.__aexit__(kind, error, traceback))

    async def _begin(self) -> None:
        if self._own:
            self._connection = await self._parts.enter_async_context(self._client.store.transaction())
            self._loan = borrow_back(self._connection)
        else:
            self._loan = borrow(self._connection)
            await self._loan.begin()

    async def _fence(self) -> None:
        claim = self._claim
        self._joined = self._client.store.join(self._loan)
        [held] = await self._joined.fence([(claim.job.id, claim.token)])
        if not held:
            raise ClaimLost(claim.job.id)

    async def _ack(self) -> None:
        claim = self._claim
        keep = self._retention.keeps(claim.job.queue, State.SUCCEEDED)
        settlement = Settlement(
            claim.job.id, claim.token, ToSucceeded(), keep, claim.next_jobs or (), claim.kv_writes or None
        )
        [result] = await self._joined.settle_last([settlement])
        if isinstance(result, WindlassError):
            raise result
        if result is not Settled.DONE:
            raise ClaimLost(claim.job.id)

    async def _end(self, error: BaseException | None) -> None:
        """Commit, or roll back after `error`."""
        if self._own:
            traceback = None if error is None else error.__traceback__
            await self._parts.__aexit__(None if error is None else type(error), error, traceback)
        elif error is None:
            await self._loan.commit()
        else:
            await self._roll_back()

    async def _was_committed(self, failure: BaseException) -> bool:
        """Find out whether a commit that failed was done: it may be that the reply alone was lost."""
        claim = self._claim
        # the job may be gone, by our own doing
        claim.in_doubt = True
        try:
            if not self._own:
                # what is still open on the caller's connection would be waited for
                await self._roll_back()
            committed = await self._joined.was_committed(failure)
        except OutcomeUnknown:
            if isinstance(failure, Exception):
                raise
            # it was to stop at once
            return False
        finally:
            claim.in_doubt = False
        if committed:
            text = "the reply to the commit of job %s was lost, and not the commit"
            logger.info(text, claim.job.id, extra=fields_of(claim.job))
        return committed

    async def _roll_back(self) -> None:
        try:
            await self._loan.rollback()
        except Exception:
            # what led here is raised, and tells more; where no rollback is possible, nothing can be committed either
            text = "the transaction of job %s could not be rolled back"
            logger.debug(text, self._claim.job.id, exc_info=True, extra=fields_of(self._claim.job))

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._loop.is_running():
            return Call(self._loop, work).result()
        # in a child process the handler has the only thread, between two turns of its loop
        return self._loop.run_until_complete(work())

    def _warn(self) -> None:
        logger.warning(
            "the transaction of job %s (%s) is open since %s: other writers may wait for it; keep it short",
            self._claim.job.id,
            self._claim.job.kind or "raw",
            self._warn_after,
            extra=fields_of(self._claim.job),
        )
