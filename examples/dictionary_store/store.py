"""The store: eleven methods, and a table of the commands. It may be used by several event loops and threads."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from threading import Lock
from typing import Any, Final, TypeVar

from examples.dictionary_store import job_commands as jobs
from examples.dictionary_store import other_commands as others
from examples.dictionary_store.queries import READS
from examples.dictionary_store.tables import Tables
from windlass.core import commands
from windlass.core.clock import Clock
from windlass.core.errors import NotTransactional, StoreMoved
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, RepeatSafety, check_tables, table_of
from windlass.core.topics import Hub, Topic

R = TypeVar("R")

STEPS: Final = table_of(
    commands.EnqueueJobs.by(jobs.enqueue),
    commands.ClaimJobs.by(jobs.claim),
    commands.SettleClaims.by(jobs.settle),
    commands.RenewClaims.by(jobs.renew),
    commands.WriteNotes.by(jobs.note),
    commands.CancelJobs.by(jobs.cancel),
    commands.RetryJobs.by(jobs.retry),
    commands.DeleteJobs.by(jobs.delete),
    commands.RescheduleJobs.by(jobs.reschedule),
    commands.SetQueueSettings.by(jobs.set_queue_settings),
    commands.RescueClaims.by(jobs.rescue),
    commands.PromoteJobs.by(jobs.promote),
    commands.PruneRecords.by(jobs.prune),
    commands.WriteSchedule.by(others.write_schedule),
    commands.RemoveSchedule.by(others.remove_schedule),
    commands.FireSchedule.by(others.fire),
    commands.WriteKv.by(others.write_kv),
    commands.TakeLock.by(others.take_lock),
    commands.FreeLock.by(others.free_lock),
    commands.WriteHeartbeat.by(others.write_heartbeat),
    commands.RemoveServer.by(others.remove_server),
    commands.WriteTimings.by(others.write_timings),
    commands.WriteAudit.by(others.write_audit),
    commands.SetMoved.by(others.set_moved),
    commands.UnpackJobs.by(others.unpack),
    commands.DeleteMoved.by(others.delete_moved),
    commands.TakeKeys.by(others.take_keys),
)
check_tables([*commands.COMMANDS, commands.EnqueueJobs, commands.ClaimJobs, commands.SettleClaims], STEPS)


class DictionaryStore(Store):
    """Jobs in dictionaries of this process."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._tables = Tables()
        self._lock = Lock()
        self._hub = Hub()

    @property
    def features(self) -> Features:
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=False,
            survives_process=False,
            replies_can_be_lost=False,
        )

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def sibling(self) -> "DictionaryStore":
        # it has the same tables, lock and hub
        return copy(self)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        return self._hub.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        del borrowed
        raise NotTransactional("a store in dictionaries")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        raise NotTransactional("a store in dictionaries")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        return await self.do(commands.EnqueueJobs(jobs), request_id=request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        return await self.do(commands.ClaimJobs(request), request_id=request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        return await self.do(commands.SettleClaims(settlements), request_id=request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        tables = self._tables
        with self._lock:
            tables.now, tables.news = self._clock.now(), frozenset()
            reply: R = tables.undone_if_it_fails(lambda: self._step(command, request_id))
            news = tables.news
        self._hub.ring(news)
        return reply

    def _step(self, command: Command[R], request_id: str | None) -> R:
        tables = self._tables
        request = None if request_id is None else (type(command), request_id)
        if request is not None and request in tables.receipts:
            reply: R = tables.receipts[request][1]
            return reply
        if command.begins_work and tables.moved is not None:
            raise StoreMoved(tables.moved.to)
        reply = STEPS[type(command)](tables, command)
        if request is not None and command.repeat is RepeatSafety.STORE:
            tables.receipts[request] = (tables.now, reply)
        return reply

    async def ask(self, query: Query[R]) -> R:
        with self._lock:
            self._tables.now = self._clock.now()
            reply: R = READS[type(query)](self._tables, query)
            return reply
