"""Executes calls where each queue is kept under a hash tag of its own: what a call touches says where it goes."""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar, cast

from windlass.core.commands import COMMANDS, UnpackJobs
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.queries import QUERIES, CheckStore, GetMoved
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store_calls import Command, Part, Query, StoreCall, check_tables
from windlass.stores.redis import keyspace, spread_commands, spread_queries, spread_schedules, spread_store_move
from windlass.stores.redis.one_queue import refusal
from windlass.stores.redis.queues import Queues

R = TypeVar("R")
C = TypeVar("C", bound=type[StoreCall[object]])

_COMMANDS: Final = {**spread_commands.COMMANDS, **spread_schedules.COMMANDS, **spread_store_move.COMMANDS}
_BRING_JOBS: Final = frozenset({UnpackJobs})
"""Commands of one queue whose server is looked at first: it must keep the jobs."""
_QUERIES: Final = {**spread_queries.QUERIES, **spread_store_move.QUERIES}


def _to_one_place(calls: Sequence[C]) -> list[C]:
    """Return those calls that go where what they touch is, and need no function here."""
    here = {*_COMMANDS, *_QUERIES}
    return [call for call in calls if call not in here and call.touches.part in (Part.STORE, Part.QUEUE)]


check_tables(COMMANDS, _COMMANDS, _to_one_place(COMMANDS))
check_tables(QUERIES, _QUERIES, _to_one_place(QUERIES), [CheckStore])


class Spread:
    """All queues of a store, and the keys that belong to none; a call that needs two queues at once is refused."""

    def __init__(self, queues: Queues) -> None:
        """Work on `queues`."""
        self._queues = queues

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._queues.close()

    async def prefixes(self) -> list[str]:
        """Return what the keys of the store begin with: first those that belong to no queue."""
        return [self._queues.home.caller.prefix, *await self._queues.prefixes()]

    async def is_mark_the_same(self) -> bool:
        """Whether all queues are closed by a move, or all are open: a mover that was killed may have left some out."""
        names = await self._queues.names()
        callers = [self._queues.home.caller, *map(self._queues.caller, names)]
        home, *others = await asyncio.gather(*[keyspace.ask(caller, GetMoved()) for caller in callers])
        return all(other == home for other in others)

    async def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        """Enqueue jobs of one queue, all or none."""
        if not jobs:
            return []
        refused = refusal(jobs, jobs[0].queue)
        if refused is not None:
            raise refused
        return await (await self._queues.taking(jobs[0].queue)).enqueue(jobs, request_id)

    async def claim(self, request: ClaimRequest, request_id: str | None) -> Claimed:
        """Give up to `limit` ready jobs, one queue after the other."""
        return await spread_commands.claim(self._queues, request, request_id)

    async def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        """Write how claims ended, those of each queue together."""
        return await spread_commands.settle(self._queues, settlements, request_id)

    async def do(self, command: Command[R], request_id: str | None = None) -> R:
        """Execute a command."""
        part = command.touches.part
        if command.begins_work and part in (Part.JOBS, Part.SCHEDULES):
            # it may find nothing that would refuse it
            await self._queues.refuse_if_moved()
        joined = _COMMANDS.get(type(command))
        if joined is not None:
            return cast("R", await joined(self._queues, command))
        if part is Part.STORE:
            return await self._queues.home.do(command, request_id)
        find = self._queues.taking if type(command) in _BRING_JOBS else self._queues.of
        return await (await find(command.touches.names(command))).do(command, request_id)

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        joined = _QUERIES.get(type(query))
        if joined is not None:
            return cast("R", await joined(self._queues, query))
        if query.touches.part is Part.STORE:
            return await self._queues.home.ask(query)
        return await keyspace.ask(self._queues.caller(query.touches.names(query)), query)
