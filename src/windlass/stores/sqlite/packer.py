"""Pack: which waiting jobs go to another store next, with all that is theirs."""

import sqlite3
from bisect import bisect_left
from datetime import datetime
from typing import Final

from windlass.core.duration import to_micros
from windlass.core.moving import HeldKey, Packed
from windlass.core.queries import PackJobs
from windlass.stores.sqlite.queries import with_traces
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import LATEST, JobRow, json_list, moment
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
        self._damaged: set[int] = set()

    def pack(self, snapshot: Snapshot, query: PackJobs) -> Packed:
        """Return the oldest waiting jobs of a queue, with history, log and keys, without those that are damaged."""
        cursor, now, queue, limit = snapshot.cursor, snapshot.now, query.queue, query.limit
        if limit < 1:
            return Packed([], [])
        while seqs := self._next(cursor, queue, limit) or self._choose(cursor, queue, limit):
            rows = [JobRow(*row) for row in cursor.execute(sql("pack"), {"seqs": json_list(seqs)}).fetchall()]
            jobs = [with_traces(cursor, row) for row in rows]
            self._damaged |= {job.seq for job in jobs if job.damage is not None}
            if sound := [job for job in jobs if job.damage is None]:
                return Packed(
                    sound, [key for row in rows if row.seq not in self._damaged for key in _held(cursor, now, row)]
                )
        # a damaged job may be repaired before the next look
        self._damaged = set()
        return Packed([], [])

    def _next(self, cursor: sqlite3.Cursor, queue: str, limit: int) -> list[int]:
        """Return what comes next of the last choice; nothing when that is less than a parcel."""
        seqs: list[int] = []
        chosen = self._chosen if queue == self._queue else []
        for at in range(0, len(chosen), limit):
            wanted = [seq for seq in chosen[at : at + limit] if seq not in self._damaged]
            seqs += [row[0] for row in cursor.execute(sql("still_waiting"), {"seqs": json_list(wanted)})]
            if len(seqs) >= limit:
                self._chosen = chosen[bisect_left(chosen, seqs[0]) :]
                return seqs[:limit]
        return []

    def _choose(self, cursor: sqlite3.Cursor, queue: str, limit: int) -> list[int]:
        parameters = {"queue": queue, "limit": max(_CHOSEN, limit) + len(self._damaged)}
        self._queue = queue
        rows = cursor.execute(sql("oldest_waiting_seqs"), parameters)
        self._chosen = [row[0] for row in rows if row[0] not in self._damaged]
        return self._chosen[:limit]


def _held(cursor: sqlite3.Cursor, now: datetime, row: JobRow) -> list[HeldKey]:
    """Return the key that a job holds: what it remembers may be another's by now."""
    if row.hold is None or row.hold_until is None:
        return []
    holder = cursor.execute(sql("holder"), {"name": row.hold, "now": to_micros(now)}).fetchone()
    if holder is None or holder[0] != row.id:
        return []
    _, expires_at, digest = holder
    return [HeldKey(row.hold, row.id, row.hold_until, moment(expires_at and min(expires_at, LATEST)), digest)]
