"""Queries of `windlass move`: where the jobs go, and which came."""

import sqlite3
from typing import Any, Final

import msgspec

from windlass.core.duration import from_micros, to_micros
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.core.queries import GetMoved, GetUnpacked, ListTimedKeys
from windlass.core.store_calls import table_of
from windlass.kit.damage import DECODE_ERRORS
from windlass.stores.sqlite.damaged import has_unreadable, readable_rows
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import LATEST
from windlass.stores.sqlite.statements import sql


def moved(snapshot: Snapshot, query: GetMoved) -> Moved | None:
    """Return where the jobs go."""
    del query
    return moved_to(snapshot.cursor)


def moved_to(cursor: sqlite3.Cursor) -> Moved | None:
    """Return where the jobs go; None while the store takes jobs."""
    row = cursor.execute(sql("moved")).fetchone()
    return None if row is None else Moved(*row)


def unpacked(snapshot: Snapshot, query: GetUnpacked) -> Unpacked | None:
    """Return the last parcel of a move and a queue that came here."""
    row = snapshot.cursor.execute(sql("unpacked"), {"move": query.move, "queue": query.queue}).fetchone()
    if row is None:
        return None
    try:
        return Unpacked(row[0], msgspec.json.decode(row[1], type=list[JobId]))
    except DECODE_ERRORS as error:
        raise StoreCorrupt(
            f"the record of move {query.move} for queue {query.queue!r} is damaged: ids {error}"
        ) from error


def timed_keys(snapshot: Snapshot, query: ListTimedKeys) -> list[HeldKey]:
    """Return keys that only time frees and whose time is not over."""
    cursor, now = snapshot
    rows = cursor.execute(sql("timed_holds"), {"now": to_micros(now), "limit": query.limit}).fetchall()
    if any(map(has_unreadable, rows)):
        # damaged ones must not take the places of others
        rows = cursor.execute(sql("timed_holds"), {"now": to_micros(now), "limit": -1}).fetchall()
    return readable_rows(rows, _timed_key, "the record of a unique key")[: query.limit]


def _timed_key(row: tuple[Any, ...]) -> HeldKey:
    name, job_id, expires_at, digest = row
    return HeldKey(name, job_id, "time", from_micros(min(expires_at, LATEST)), digest)


QUERIES: Final = table_of(GetMoved.by(moved), GetUnpacked.by(unpacked), ListTimedKeys.by(timed_keys))
"""The function that executes each query of this module."""
