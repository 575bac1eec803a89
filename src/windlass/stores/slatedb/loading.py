"""Many values at once, and the records of jobs by their ids."""

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import cannot_be_read, lacks_a_part
from windlass.stores.slatedb.ranges import PAGE
from windlass.stores.slatedb.view import View

AT_ONCE: Final = 64
"""Gets that are under way at a time: against a bucket each of them may be a request."""
FEW: Final = 4
"""So many records are read one by one."""
SPARSE: Final = 4
"""A scan that reads this many times as many rows as it looks for costs more than single gets."""


class Loaded(NamedTuple):
    """A record, and the bytes that it is kept as."""

    record: Record
    main: bytes


class Found(NamedTuple):
    """The jobs that are there: their records, or why these cannot be read."""

    loaded: dict[JobId, Loaded]
    damaged: dict[JobId, StoreCorrupt]


async def gets(view: View, wanted: Sequence[bytes]) -> list[bytes | None]:
    """Return the values of these keys, in their order; None for each that is not there."""
    if len(wanted) == 1:
        return [await view.get(wanted[0])]
    room = asyncio.Semaphore(AT_ONCE)

    async def get(key: bytes) -> bytes | None:
        async with room:
            return await view.get(key)

    return await asyncio.gather(*map(get, wanted))


async def load_records(
    view: View, ids: Iterable[JobId], parts: Collection[records.Part] = records.PARTS
) -> dict[JobId, Loaded]:
    """Return the records of those of these jobs that are there; what lies apart is read if it is among `parts`.

    Raises `StoreCorrupt` for one that is damaged.
    """
    return _all_of(await find_records(view, ids, parts))


async def find_records(view: View, ids: Iterable[JobId], parts: Collection[records.Part]) -> Found:
    """Return the records as `load_records`, and beside them what is damaged."""
    return await _join_parts(view, await load_kept(view, ids), parts)


async def load_kept(view: View, ids: Iterable[JobId]) -> dict[JobId, bytes]:
    """Return the records that are there as they are kept, without the parts that lie apart."""
    by_key = {keys.job(job_id): job_id for job_id in ids}
    left = sorted(by_key)
    found: dict[JobId, bytes] = {}
    # ids rise with time: jobs that are asked for together often lie together
    while len(left) > FEW:
        size = min(len(left), PAGE)
        rows = await view.scan(left[0], left[-1] + b"\0", limit=size)
        found |= {by_key[key]: value for key, value in rows if key in by_key}
        if len(rows) < size:
            return found
        passed = bisect_right(left, rows[-1][0])
        del left[:passed]
        if SPARSE * passed < size:
            break
    values = await gets(view, left)
    return found | {by_key[key]: value for key, value in zip(left, values, strict=True) if value is not None}


async def join_parts(view: View, kept: Mapping[JobId, bytes], wanted: Collection[records.Part]) -> dict[JobId, Loaded]:
    """Return the records with those of their parts that lie apart and are wanted; raises `StoreCorrupt`."""
    return _all_of(await _join_parts(view, kept, wanted))


def _all_of(found: Found) -> dict[JobId, Loaded]:
    for error in found.damaged.values():
        raise error
    return found.loaded


async def _join_parts(view: View, kept: Mapping[JobId, bytes], wanted: Collection[records.Part]) -> Found:
    damaged: dict[JobId, StoreCorrupt] = {}
    parts, torn = await _read_parts(view, kept, wanted)
    whole = {job_id: main for job_id, main in kept.items() if job_id not in torn}
    if torn:
        # a reader follows the owner: where a part has gone since, the record was written anew, or has gone as well
        again = await load_kept(view, torn)
        newer_parts, torn = await _read_parts(view, again, wanted)
        whole |= {job_id: main for job_id, main in again.items() if job_id not in torn}
        parts |= newer_parts
        damaged = {job_id: lacks_a_part(job_id) for job_id in sorted(torn)}
    try:
        return Found(_joined(whole, parts), damaged)
    except ValueError:
        return _find_damaged(whole, parts, damaged)


def _joined(kept: Mapping[JobId, bytes], parts: Mapping[JobId, Mapping[bytes, bytes]]) -> dict[JobId, Loaded]:
    return {job_id: Loaded(records.join(main, parts.get(job_id, {})), main) for job_id, main in kept.items()}


def _find_damaged(
    kept: Mapping[JobId, bytes], parts: Mapping[JobId, Mapping[bytes, bytes]], damaged: dict[JobId, StoreCorrupt]
) -> Found:
    """Return what can be read of records that cannot all be."""
    found = Found({}, damaged)
    for job_id, main in kept.items():
        try:
            found.loaded.update(_joined({job_id: main}, parts))
        except ValueError as error:
            damaged[job_id] = cannot_be_read(job_id, error)
    return found


async def _read_parts(
    view: View, kept: Mapping[JobId, bytes], wanted: Collection[records.Part]
) -> tuple[dict[JobId, dict[bytes, bytes]], set[JobId]]:
    """Return the parts that lie apart, by their letters, and the jobs that lack one."""
    apart = [
        (job_id, part.letter) for job_id, main in kept.items() for part in records.parts_apart(main) if part in wanted
    ]
    values = await gets(view, [keys.part(job_id, letter) for job_id, letter in apart])
    parts: dict[JobId, dict[bytes, bytes]] = {}
    torn: set[JobId] = set()
    for (job_id, letter), value in zip(apart, values, strict=True):
        if value is None:
            torn.add(job_id)
        else:
            parts.setdefault(job_id, {})[letter] = value
    return parts, torn
