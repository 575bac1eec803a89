"""Executes calls on the keys that begin with one prefix: a whole store, or one queue of it."""

from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from windlass.core.commands import COMMANDS
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.queries import QUERIES, CheckStore
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store_calls import Command, Query, RepeatSafety, check_tables
from windlass.kit.request_names import of_kind
from windlass.stores.redis import commands, queries, store_move
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.claim import claim
from windlass.stores.redis.enqueuer import Enqueuer
from windlass.stores.redis.settler import Settler

R = TypeVar("R")

STEPS: Final = {**commands.COMMANDS, **store_move.COMMANDS}
READS: Final = {**queries.QUERIES, **store_move.QUERIES}

check_tables(COMMANDS, STEPS)
check_tables([query for query in QUERIES if query is not CheckStore], READS)


class Keyspace:
    """The keys that begin with one prefix."""

    def __init__(self, caller: Caller, in_round: Caller | None = None) -> None:
        """Run scripts through `caller`."""
        self.caller = caller
        self.round = in_round or caller
        """The caller for a round through several queues: it gives up soon where no server answers."""
        self._enqueuer = Enqueuer(caller)
        self._settler = Settler(caller)

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._enqueuer.close()
        await self._settler.close()

    async def prefixes(self) -> list[str]:
        """Return what the keys of the store begin with."""
        return [self.caller.prefix]

    async def is_mark_the_same(self) -> bool:
        """Return True: the mark of a move is one key, which holds for all queues."""
        return True

    def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> Awaitable[list[Enqueued]]:
        """Enqueue jobs, all or none."""
        return self._enqueuer.enqueue(jobs, request_id)

    def claim(self, request: ClaimRequest, request_id: str | None) -> Awaitable[Claimed]:
        """Give ready jobs to the caller."""
        return claim(self.caller, request, request_id)

    def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> Awaitable[list[SettleResult]]:
        """Write how claims ended."""
        return self._settler.settle(settlements, request_id)

    def do(self, command: Command[R], request_id: str | None = None) -> Awaitable[R]:
        """Execute a command."""
        if request_id is None or command.repeat is not RepeatSafety.STORE:
            return do(self.caller, command)
        return do(self.caller.named(of_kind(type(command).__name__, request_id)), command)

    def ask(self, query: Query[R]) -> Awaitable[R]:
        """Execute a query."""
        return ask(self.caller, query)


def do(caller: Caller, command: Command[R]) -> Awaitable[R]:
    """Execute a command on the keys of one prefix."""
    return STEPS[type(command)](caller, command)


def ask(caller: Caller, query: Query[R]) -> Awaitable[R]:
    """Execute a query on the keys of one prefix."""
    return READS[type(query)](caller, query)
