"""Writes inside a caller's own transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob, Token
from windlass.core.joined_transaction import BorrowedConnection
from windlass.core.requests import Settlement, SettleResult
from windlass.core.topics import Topic, queue_topic
from windlass.stores.postgres.callers_faults import is_doubtful, translate
from windlass.stores.postgres.channels import channels_of, letters
from windlass.stores.postgres.commit_receipts import CommitReceipts
from windlass.stores.postgres.lender import Lent
from windlass.stores.postgres.moves.departure import or_moved, refuse_here_if_moved
from windlass.stores.postgres.moves.enqueue import AT_ONCE, BYTES_AT_ONCE, insert_any, insert_here, is_plain
from windlass.stores.postgres.moves.hold_claims import fence_all
from windlass.stores.postgres.moves.receipts import write_last
from windlass.stores.postgres.moves.settle import settle_all
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.settings import limits, search_path
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.visit import as_a_guest, patiently, undone_if_refused
from windlass.stores.postgres.work import Changes, Many, Rows, Statement, Work

T = TypeVar("T")
Ring = Callable[[set[Topic]], None]


class PostgresJoined:
    """Writes through a connection that the caller opened, and that the caller commits.

    Plain jobs cost one statement. Whatever can be refused halfway is written under a savepoint. After any other error
    the caller's transaction can only be rolled back, as after an error of the caller's own.
    """

    def __init__(
        self,
        options: Options,
        borrowed: BorrowedConnection,
        clock: Clock,
        ring: Ring,
        *,
        store_id: str,
        receipts: CommitReceipts,
        lent: Lent | None = None,
    ) -> None:
        """Write to the store with `store_id`; `ring` is called with the news once the caller has committed.

        On a connection of our own that we lent, and will commit, the news is left in `lent`.
        """
        self._options = options
        self._borrowed = borrowed
        self._clock = clock
        self._ring = ring
        self._store_id = store_id
        self._receipts = receipts
        self._lent = lent
        self._is_here = lent is not None
        self._last: tuple[str, JobId] | None = None

    async def fence(self, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
        """Tell which claims still hold; nobody can take them back until the caller's transaction ends."""
        return await self._visit(self._after_a_look(self._patiently(fence_all(claims))))

    async def enqueue(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        """Put jobs in line when the caller's transaction commits."""
        if not jobs:
            return []
        if is_plain(jobs) and _fit_one_statement(jobs):
            return await self._enqueue_plain(jobs)
        changes = self._changes()
        work = undone_if_refused(_unless_moved(_counted(changes, insert_any(changes, jobs))))
        done = await self._visit(self._after_a_look(self._patiently(work)), undone=True)
        await self._tell(changes.topics)
        return done

    async def settle(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended when the caller's transaction commits."""
        changes = self._changes()
        return await self._settle(changes, _counted(changes, settle_all(changes, settlements)))

    async def settle_last(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended as the last step, with a receipt by which the commit is known."""
        changes, receipt, job_id = self._changes(), self._receipts.new(), settlements[0].job_id
        work = _with_receipt(changes, _counted(changes, settle_all(changes, settlements)), receipt)
        results = await self._settle(changes, work)
        self._last = receipt, job_id
        if self._lent is not None:
            self._lent.settles = job_id
        return results

    async def was_committed(self, error: BaseException) -> bool:
        """Tell whether the transaction was committed, though its commit raised `error`."""
        if self._last is None or not is_doubtful(error):
            return False
        receipt, job_id = self._last
        committed = await self._receipts.was_committed(receipt, job_id, in_haste=not isinstance(error, Exception))
        if committed and self._lent is not None:
            # whoever lent it has not, since it did not know
            self._ring(self._lent.news)
        return committed

    async def _settle(self, changes: Changes, work: Work[list[SettleResult]]) -> list[SettleResult]:
        results = await self._visit(self._after_a_look(self._patiently(work)))
        await self._tell(changes.topics)
        return results

    async def _enqueue_plain(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        news = {queue_topic(job.queue) for job in jobs}
        # the caller's library is asked first: if it cannot tell of the commit, the statement itself has Postgres tell
        untold = await self._untold(news)
        channel, payload = untold[0] if untold else (None, None)
        here = partial(insert_here, store_id=self._store_id, channel=channel, payload=payload)
        work = here(self._changes(), jobs, patience=limits(self._options.timeout).lock)
        return await self._visit(self._if_here(work))

    def _changes(self) -> Changes:
        return Changes(None if self._clock.goes_by_itself else self._clock.now())

    def _patiently(self, work: Work[T]) -> Work[T]:
        """Do not wait for ever for a key that another transaction is about to take, or for a job that it holds."""
        return patiently(limits(self._options.timeout).lock, work)

    def _after_a_look(self, work: Work[T]) -> Work[T]:
        """Look first, and once, whether the connection is open on this store; other statements do not tell."""
        if not self._is_here:
            rows = yield Statement("store_id")
            if [row[0] for row in rows] != [self._store_id]:
                raise (yield from self._not_this_store())
            self._is_here = True
        return (yield from work)

    def _if_here(self, work: Work[T | None]) -> Work[T]:
        """Refuse the connection when `work` finds no answer, since it looks by itself."""
        answer = yield from work
        if answer is None:
            raise (yield from self._not_this_store())
        return answer

    def _not_this_store(self) -> Work[WindlassError]:
        """Return why the tables that the connection finds are not those of this store."""
        [(database, schema)] = yield Statement("whereabouts")
        if not (yield Statement("store_id")):
            message = (
                f"this transaction does not see the store in {self._options.where}: it was made after the transaction "
                "began, which is repeatable read or serializable. Roll back, and begin again"
            )
            return StoreUnavailable(message, retryable=True)
        return InvalidValue(
            f"connection= is open on the database {database!r}, where {schema!r} holds the tables of another store: "
            f"the jobs are in {self._options.where}"
        )

    async def _tell(self, topics: set[Topic]) -> None:
        await self._in_our_words(self._drive(_notify(await self._untold(topics))))

    async def _untold(self, topics: set[Topic]) -> list[tuple[str, str]]:
        """Have whoever waits rung after the commit; return what must be sent instead, where nobody can do that."""
        if self._lent is not None:
            self._lent.news |= topics
            return []
        loop = asyncio.get_running_loop()
        if not topics or await self._borrowed.after_commit(lambda: _ring_in(loop, self._ring, topics)):
            return []
        return letters(channels_of(self._store_id), topics) if self._options.notify else []

    async def _visit(self, work: Work[T], *, undone: bool = False) -> T:
        """Run a move in the caller's transaction, with the search path that finds our tables."""
        path = search_path(self._options) if self._lent is None else None
        return await self._in_our_words(self._drive(work if path is None else as_a_guest(path, work)), undone=undone)

    async def _in_our_words(self, driven: Awaitable[T], *, undone: bool = False) -> T:
        try:
            return await driven
        except WindlassError:
            raise
        except Exception as error:
            raise translate(error, self._options.where, undone=undone) from error

    async def _drive(self, work: Work[T]) -> T:
        try:
            wanted = next(work)
            while True:
                try:
                    rows = await self._run(wanted)
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the move may have to undo something
                    wanted = work.throw(error)
                else:
                    wanted = work.send(rows)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def _run(self, wanted: Statement | Many) -> Rows:
        text, values = statement(wanted.name)
        if isinstance(wanted, Statement):
            return await self._borrowed.execute(text, values(wanted.parameters))
        await self._borrowed.execute_many(text, [values(row) for row in wanted.parameters])
        return ()


def _fit_one_statement(jobs: Sequence[PreparedJob]) -> bool:
    return len(jobs) <= AT_ONCE and sum(len(job.payload) for job in jobs) <= BYTES_AT_ONCE


def _notify(untold: Sequence[tuple[str, str]]) -> Work[None]:
    for channel, payload in untold:
        yield Statement("notify_here", {"channel": channel, "message": payload})


def _unless_moved(work: Work[T]) -> Work[T]:
    answer = yield from or_moved(work)
    yield from refuse_here_if_moved()
    return answer


def _counted(changes: Changes, work: Work[T]) -> Work[T]:
    answer = yield from work
    yield from changes.flush()
    return answer


def _with_receipt(changes: Changes, work: Work[T], request_id: str) -> Work[T]:
    answer = yield from work
    yield from write_last(changes, request_id)
    return answer


def _ring_in(loop: asyncio.AbstractEventLoop, ring: Ring, topics: set[Topic]) -> None:
    # a loop that was closed has nobody left to wake, and its store nobody to tell: others find the jobs by looking
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(ring, topics)
