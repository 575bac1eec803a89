"""Many values at once, and the records of jobs by their ids."""

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.kit.damage import DECODE_ERRORS
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import DamagedRecord, fit, read_damaged
from windlass.stores.slatedb.queues import index_of, place_of
from windlass.stores.slatedb.ranges import PAGE, pages
from windlass.stores.slatedb.view import View

AT_ONCE: Final = 64
"""Gets that are under way at a time: against a bucket each of them may be a request."""
FEW: Final = 4
"""So many records are read one by one."""
SPARSE: Final = 4
"""A scan that reads this many times as many rows as it looks for costs more than single gets."""
SEARCHED: Final = 20_000
"""A look searches so many entries of indexes for the places of damaged jobs."""
_INDEXES: Final = (keys.LINES, keys.DUE, keys.LEASES, keys.ENDS)
PLACE_FIELDS: Final = frozenset(
    ["seq", "queue", "kind", "state", "priority", "run_at", "lease_expires_at", "finished_at"]
)
"""The fields that say where a job stands in the indexes."""
NONE_LOST: Final[Mapping[bytes, str]] = {}


class Loaded(NamedTuple):
    """A record, and the bytes that it is kept as.

    `lost` are the parts that lie apart and cannot be read, by their letters, with the reasons. `unread` are the fields
    of a record that is found damaged now, and None for any other one.
    """

    record: Record
    main: bytes
    lost: Mapping[bytes, str] = NONE_LOST
    unread: Collection[str] | None = None

    def job(self) -> Job:
        """Return the job as it is now."""
        return self._with_damage(self.record.job())

    def whole_job(self) -> Job:
        """Return the job as it is now, with its history and log."""
        return self._with_damage(self.record.whole_job())

    def _with_damage(self, job: Job) -> Job:
        if not self.lost:
            return job
        known = job.damage or ""
        new = [reason for reason in self.lost.values() if reason not in known]
        return job._replace(damage="; ".join(filter(None, [known, *new])))


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

    A record that is damaged has stand-ins for what cannot be read.
    """
    return await load_parts(view, await load_kept(view, ids), parts)


async def load_parts(view: View, kept: Mapping[JobId, bytes], parts: Collection[records.Part]) -> dict[JobId, Loaded]:
    """Return the records as `load_records`, of their bytes."""
    loaded = await join_parts(view, kept, parts)
    damaged = [each for each in loaded.values() if each.unread and not PLACE_FIELDS.isdisjoint(each.unread)]
    if damaged:
        places = await find_places(view, [each.record for each in damaged], SEARCHED)
        for each in damaged:
            if (place := places.get(each.record.id)) is not None:
                fit(DamagedRecord(each.record, each.unread or ()), place)
    return loaded


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
    """Return the records with those of their parts that lie apart and are wanted."""
    parts, torn = await _read_parts(view, kept, wanted)
    if torn:
        # a reader follows the owner: where a part has gone since, the record was written anew, or has gone as well
        again = await load_kept(view, torn)
        newer_parts, _ = await _read_parts(view, again, wanted)
        kept = {job_id: main for job_id, main in kept.items() if job_id not in torn} | again
        parts |= newer_parts
    else:
        try:
            return _joined(kept, parts)
        except DECODE_ERRORS:
            pass
    return {job_id: _load(job_id, main, parts.get(job_id, {}), wanted) for job_id, main in kept.items()}


def _joined(kept: Mapping[JobId, bytes], parts: Mapping[JobId, Mapping[bytes, bytes]]) -> dict[JobId, Loaded]:
    return {job_id: Loaded(records.join(job_id, main, parts.get(job_id)), main) for job_id, main in kept.items()}


def _load(job_id: JobId, main: bytes, parts: Mapping[bytes, bytes], wanted: Collection[records.Part]) -> Loaded:
    """Return what can be read of a record and its parts."""
    unread: Collection[str] | None = None
    try:
        record = records.join(job_id, main)
    except DECODE_ERRORS:
        record, unread = read_damaged(job_id, main)
    lost: dict[bytes, str] = {}
    for part in records.parts_apart(main):
        if part in wanted and (why := give_part(record, part, parts.get(part.letter))) is not None:
            lost[part.letter] = f"{part.field} {why}"
    if records.PAYLOAD.letter in lost and (record.damage is None or unread is not None):
        # without it no worker can run the job
        record.damage = "; ".join(filter(None, [record.damage, lost[records.PAYLOAD.letter]]))
        unread = [*(unread or ()), records.PAYLOAD.field]
    return Loaded(record, main, lost, unread)


def give_part(record: Record, part: records.Part, value: bytes | None) -> str | None:
    """Give a record a part of it; return why that cannot be."""
    if value is None:
        return "is missing"
    try:
        setattr(record, part.field, part.decode(value))
    except DECODE_ERRORS as error:
        return f"cannot be read ({error})"
    return None


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


async def find_places(view: View, found: Iterable[Record], most: float = inf) -> dict[JobId, bytes]:
    """Return the places of these jobs: where their records say, or else where a search through the indexes meets them.

    The search ends after about `most` keys.
    """
    said = {record.id: index_of(record) + place_of(record) for record in found}
    values = await gets(view, list(said.values()))
    places = {job_id: place for (job_id, place), value in zip(said.items(), values, strict=True) if value is not None}
    wanted = {keys.id_bytes(job_id): job_id for job_id in said if job_id not in places}
    seen = 0
    for family in _INDEXES if wanted else ():
        async for rows in pages(view, family, keys.after(family)):
            for key, _ in rows:
                if (job_id := wanted.get(keys.id_bytes_of(key))) is not None:
                    places[job_id] = key
            seen += len(rows)
            if len(places) == len(said) or seen >= most:
                return places
    return places
