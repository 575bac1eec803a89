"""The bare engine: the least code on the interpreter's own `sqlite3` that moves a job along, at FULL.

It has no leases, tokens, retries or waiting: what a queue costs over it is what the queue gives.
"""

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from benchmarks.measuring.contestant import Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers.durability import name_of
from benchmarks.workloads import blocking

NAME = "bare"
BATCH = 100

SCHEMA = """
create table if not exists job(
  id integer primary key, queue text not null, state text not null, priority int not null default 1000,
  run_at real not null, payload blob not null
) strict;
create index if not exists ready on job(queue, priority, run_at, id) where state = 'pending';
"""
INSERT = "insert into job(queue, state, run_at, payload) values (?, 'pending', ?, ?)"
CLAIM = """
update job set state = 'running' where id in (
  select id from job where queue = ? and state = 'pending' order by priority, run_at, id limit ?
) returning id, payload
"""
ACK_AND_DELETE = "delete from job where id = ?"
ACK_AND_KEEP = "update job set state = 'succeeded' where id = ?"


class Queue:
    """A table, an index and three statements."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use a connection in autocommit mode."""
        self._connection = connection

    def put(self, value: Payload) -> None:
        """Insert one row in one commit."""
        self._connection.execute(INSERT, (QUEUE, time.time(), msgspec.json.encode(value)))

    def put_many(self, values: Sequence[Payload]) -> None:
        """Insert all rows in one commit."""
        now = time.time()
        rows = [(QUEUE, now, msgspec.json.encode(value)) for value in values]
        with self._commit():
            self._connection.executemany(INSERT, rows)

    def take(self, *, keep: bool) -> int:
        """Claim 100 in one commit and ack them in another."""
        claimed = self.claim(BATCH)
        self.ack(claimed, keep=keep)
        return len(claimed)

    def claim(self, limit: int) -> list[int]:
        """Claim up to `limit` rows."""
        with self._commit():
            return [row[0] for row in self._connection.execute(CLAIM, (QUEUE, limit))]

    def ack(self, claimed: Sequence[int], *, keep: bool = False) -> None:
        """Delete or mark the claimed rows in one commit."""
        with self._commit():
            self._connection.executemany(ACK_AND_KEEP if keep else ACK_AND_DELETE, [(row,) for row in claimed])

    @contextmanager
    def _commit(self) -> Generator[None]:
        self._connection.execute("begin immediate")
        with self._connection:
            yield


@contextmanager
def open_queue(folder: Path) -> Generator[Queue]:
    """Make the table in the file of the folder, unless it is there."""
    with closing(_connect(folder)) as connection:
        connection.executescript(SCHEMA)
        yield Queue(connection)


def durability(folder: Path) -> str:
    """Read the setting from a connection."""
    with closing(_connect(folder)) as connection:
        return name_of(connection.execute("pragma synchronous").fetchone()[0])


def _connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


CONTESTANT = Contestant(
    name=NAME,
    role=Role.ENGINE,
    distribution=None,
    module="sqlite3",
    how="three statements on the interpreter's sqlite3, claimed and acked 100 at a time; no leases, no tokens",
    durability=durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_many": blocking.enqueue_many(open_queue),
        "claim_deleted": blocking.claim_loop(open_queue, keep=False),
        "claim_kept": blocking.claim_loop(open_queue, keep=True),
        "claim_latency": blocking.claim_latency(open_queue),
        "end_to_end": blocking.end_to_end(NAME, open_queue),
    },
    produce=blocking.bulk_producer(open_queue),
)
