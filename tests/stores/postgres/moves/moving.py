"""Moves run one by one on a real database, and what the tests of them begin with."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

import psycopg

from tests.stores.postgres.shell import blocking, options_of
from windlass.core.ids import JobId
from windlass.core.job import Claim, Job, PreparedJob, Token
from windlass.core.queries import GetJobs, GetStats
from windlass.core.requests import ClaimRequest
from windlass.core.stats import QueueStats
from windlass.core.topics import Hub, Topic
from windlass.stores.postgres import queries
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.moves.claim import claim_heads
from windlass.stores.postgres.moves.enqueue import insert_plain
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Changes, Many, Rows, Statement, Work
from windlass.system import SystemClock

P = ParamSpec("P")
T = TypeVar("T")


class Mover:
    """Runs moves, each in a transaction of its own, by the database's clock."""

    def __init__(self, url: str) -> None:
        self.url = url
        options = options_of(url, connections=4)
        self.connections = Connections(options)
        self.told: set[Topic] = set()
        self._runner = Runner(self.connections, Hub(), self, SystemClock(), options)

    def tell(self, topics: set[Topic]) -> None:
        self.told |= topics

    async def do(self, move: Callable[Concatenate[Changes, P], Work[T]], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a move, write its counts, and return its answer."""

        def work(changes: Changes) -> Work[T]:
            answer = yield from move(changes, *arguments, **named)
            yield from changes.flush()
            return answer

        return await self._runner.run(work)

    async def run_once(self, make: Callable[[Changes], Work[T]], again: Callable[[], Work[T]]) -> T:
        """Run a move of one statement that ends by a receipt; return its answer, or the first one."""
        return await self._runner.run(make, whole=False, again=again)

    async def look(self, look: Callable[Concatenate[Changes, P], Work[T]], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a look and return its answer."""
        return await self._runner.look(lambda changes: look(changes, *arguments, **named))

    async def enqueue(self, *jobs: PreparedJob) -> list[JobId]:
        """Put jobs in line, and return their ids."""
        await self.do(insert_plain, jobs)
        return [job.id for job in jobs]

    async def claim(
        self, limit: int = 1, *, queue: str = "default", lease: timedelta = timedelta(minutes=1), worker: str = "w"
    ) -> list[Claim]:
        """Claim ready jobs; there must be as many as are wanted."""
        request = ClaimRequest([queue], limit, lease, None, worker)
        heads = await self.do(partial(claim_heads, promoted=False), request, uuid4().hex)
        assert len(heads.claims) == limit
        return heads.claims

    async def get(self, job_id: JobId) -> Job:
        """Return a job that must be there."""
        [job] = await self.look(queries.get, GetJobs([job_id]))
        assert job is not None
        return job

    async def stats(self, queue: str = "default") -> QueueStats:
        """Return the counts of a queue."""
        [row] = await self.look(queries.stats, GetStats(queue))
        return row

    @contextmanager
    def somebody(self) -> Generator[psycopg.Connection[tuple[Any, ...]]]:
        """Give a connection of somebody else, in a transaction that is rolled back at the end of the block."""
        with blocking(self.url) as connection:
            yield connection
            connection.rollback()

    def run(self, statement: str, parameters: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement of the test, and commit it."""
        with blocking(self.url) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []


def proof(claim: Claim) -> tuple[JobId, Token]:
    """Return what renewals, notes and fences take."""
    return claim.job.id, claim.token


class Counted:
    """Counts the statements of a move."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, work: Work[T]) -> Work[T]:
        """Run `work` as it is."""
        rows: Rows | None = None
        try:
            while True:
                wanted: Statement | Many = next(work) if rows is None else work.send(rows)
                self.statements.append(wanted.name)
                rows = yield wanted
        except StopIteration as end:
            answer: T = end.value
            return answer
