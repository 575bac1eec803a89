"""What a move looks at: where the jobs go, and what has come."""

import sqlite3
from datetime import datetime

import msgspec

from windlass.core.duration import from_micros, to_micros
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.stores.sqlite.statements import sql


def moved(cursor: sqlite3.Cursor) -> Moved | None:
    """Return where the jobs go; None while the store takes jobs."""
    row = cursor.execute(sql("moved")).fetchone()
    return None if row is None else Moved(*row)


def unpacked(cursor: sqlite3.Cursor, move: str, queue: str) -> Unpacked | None:
    """Return the last parcel of a move and a queue that came here."""
    row = cursor.execute(sql("unpacked"), (move, queue)).fetchone()
    return None if row is None else Unpacked(row[0], msgspec.json.decode(row[1], type=list[JobId]))


def timed_keys(cursor: sqlite3.Cursor, now: datetime, limit: int) -> list[HeldKey]:
    """Return keys that only time frees and whose time is not over."""
    rows = cursor.execute(sql("timed_holds"), (to_micros(now), limit)).fetchall()
    return [HeldKey(name, job_id, "time", from_micros(expires_at), digest) for name, job_id, expires_at, digest in rows]
