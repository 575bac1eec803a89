"""Pack: which waiting jobs go to another store next, with all that is theirs."""

import sqlite3
from bisect import bisect_left
from datetime import datetime
from typing import Any, Final

from windlass.core.duration import to_micros
from windlass.core.moving import HeldKey, Packed
from windlass.stores.sqlite.looks import with_traces
from windlass.stores.sqlite.rows import JobRow, json_list, moment
from windlass.stores.sqlite.statements import sql

_CHOSEN: Final = 50_000


class Packer:
    """Packs parcel after parcel; used by the reading thread alone.

    The oldest come first, an order that no index has: so the choice out of all that wait is made for many parcels at
    once. A parcel that it cannot fill is chosen anew, since jobs that ran may wait again.
    """

    def __init__(self) -> None:
        """Begin without a choice."""
        self._queue = ""
        self._chosen: list[int] = []

    def pack(self, cursor: sqlite3.Cursor, now: datetime, queue: str, limit: int) -> Packed:
        """Return the oldest waiting jobs of `queue`, with history, log and keys."""
        if limit < 1:
            return Packed([], [])
        seqs = self._next(cursor, queue, limit) or self._choose(cursor, queue, limit)
        rows = cursor.execute(sql("pack"), (json_list(seqs),)).fetchall()
        keys = [key for row in rows for key in _held(cursor, now, row)]
        return Packed([with_traces(cursor, JobRow(*row[:-2])) for row in rows], keys)

    def _next(self, cursor: sqlite3.Cursor, queue: str, limit: int) -> list[int]:
        """Return what comes next of the last choice; nothing when that is less than a parcel."""
        seqs: list[int] = []
        chosen = self._chosen if queue == self._queue else []
        for at in range(0, len(chosen), limit):
            seqs += [row[0] for row in cursor.execute(sql("still_waiting"), (json_list(chosen[at : at + limit]),))]
            if len(seqs) >= limit:
                self._chosen = chosen[bisect_left(chosen, seqs[0]) :]
                return seqs[:limit]
        return []

    def _choose(self, cursor: sqlite3.Cursor, queue: str, limit: int) -> list[int]:
        parameters = {"queue": queue, "limit": max(_CHOSEN, limit)}
        self._queue = queue
        self._chosen = [row[0] for row in cursor.execute(sql("oldest_waiting_seqs"), parameters)]
        return self._chosen[:limit]


def _held(cursor: sqlite3.Cursor, now: datetime, row: tuple[Any, ...]) -> list[HeldKey]:
    """Return the key that a job of a row of `pack.sql` holds: what it remembers may be another's by now."""
    _, job_id, *_, hold, until = row
    if hold is None:
        return []
    holder = cursor.execute(sql("holder"), (hold, to_micros(now))).fetchone()
    if holder is None or holder[0] != job_id:
        return []
    _, expires_at, digest = holder
    return [HeldKey(hold, job_id, until, moment(expires_at), digest)]
