"""The records of the moment: what the calls under way are about, and nothing else of what the database has.

Whatever a move looks at was read before; whatever it changes is gathered here, and goes into the database in one write.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from windlass.core.clock import Rng
from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.looks import SERVED, ServerRecord
from windlass.core.moving import Moved
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.topics import Topic
from windlass.kit.damage import dead_reason
from windlass.kit.moves import table
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record, new_record
from windlass.kit.moves.scheduling import Schedules
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import DamagedRecord, fit, log, logger, read_damaged
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.front import FromFronts, Front
from windlass.stores.slatedb.holders import Holders
from windlass.stores.slatedb.known import Known, Written
from windlass.stores.slatedb.loading import Loaded, find_places, gets, give_part, join_parts, load_kept
from windlass.stores.slatedb.minutes import Minutes
from windlass.stores.slatedb.queues import Queue, index_of, place_of
from windlass.stores.slatedb.repeats import Repeats
from windlass.stores.slatedb.untold import Untold
from windlass.stores.slatedb.view import View

JOBS_KEPT: Final = 2_000
FRONTS_KEPT: Final = 10_000


class Begin(NamedTuple):
    """What an owner reads once, when it opens the database."""

    counters: records.Counters
    queues: Mapping[str, records.QueueRecord]
    schedules: dict[str, Schedule]
    servers: dict[str, ServerRecord]
    served_under: dict[str, str]
    minutes: Minutes
    moved: Moved | None
    recounted: Collection[str] = ()
    """The queues whose records could not be read, and are to be written anew."""


class Table(table.Table):
    """Jobs, unique keys and fronts of indexes as far as they were read; queues, schedules and servers whole.

    `now` is the time of the calls that are being served. It is `torn` once a write has failed: nobody knows then
    whether the database has what is here.
    """

    def __init__(self, database: Database, begin: Begin, rng: Rng) -> None:
        self._database = database
        self.rng = rng
        self.now = datetime.min.replace(tzinfo=UTC)
        self.news: set[Topic] = set()
        self.torn = False
        self.counters = begin.counters
        self.minutes = begin.minutes
        self.moved = begin.moved
        self._changes: dict[bytes, bytes | None] = {}
        self._jobs: Known[JobId, Record] = Known()
        self._places: dict[JobId, bytes] = {}
        self._apart: dict[JobId, records.Apart] = {}
        self._changed: dict[JobId, Record] = {}
        self._finished: set[JobId] = set()
        self._touched: set[Queue] = set()
        self._fronts: dict[bytes, Front] = {}
        self.ownership = ""
        self.ended_servers: set[str] = set()
        self._damaged: dict[JobId, Loaded] = {}
        """The jobs whose records were found damaged since the last write."""
        self.untold = Untold()
        self.repeats = Repeats()
        self.pruned_to: dict[bytes, bytes] = {}
        self._holders = Holders(self._changes)
        self.holds = Holds(self._holders)
        self._begins = {index: begin for kept in begin.queues.values() for index, begin in kept.begins}
        self.queues = {name: Queue(self, name, kept, self._touched.add) for name, kept in begin.queues.items()}
        self._touched.update(self.queues[name] for name in begin.recounted)
        self.servers = Written(begin.servers, lambda key, server: self._write_named(keys.SERVERS, key, server))
        self._served_under = Written(
            begin.served_under,
            lambda key, ownership: self.put(
                keys.named(keys.SERVED_UNDER, key), None if ownership is None else ownership.encode()
            ),
        )
        schedules = Written(begin.schedules, lambda key, found: self._write_named(keys.SCHEDULES, key, found))
        self.schedules = Schedules(self, schedules, self._next_revision)

    @property
    def jobs(self) -> Mapping[JobId, Record]:
        """The jobs that were read, by their ids."""
        return self._jobs

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._changes or self._changed or self._touched)

    def queue(self, name: str) -> Queue:
        """Return a queue, known from now on."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(self, name, records.QueueRecord(), self._touched.add)
            self._touched.add(queue)
        return queue

    def add(self, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
        """Keep a new job, which stands nowhere yet."""
        self.counters.seq += 1
        record = new_record(self.counters.seq, given, now, run_at)
        self._jobs[record.id] = record
        self._changes[keys.order(record.seq)] = keys.id_bytes(record.id)
        return record

    def take_in(self, record: Record) -> None:
        """Keep a job that comes from another store, under a number of its own."""
        self.counters.seq += 1
        record.seq = self.counters.seq
        self._jobs[record.id] = record
        self._changes[keys.order(record.seq)] = keys.id_bytes(record.id)

    def remove(self, record: Record) -> None:
        """Forget a job."""
        self.queue(record.queue).leave(record)
        self._changed.pop(record.id, None)
        del self._jobs[record.id]
        self._jobs.absent.add(record.id)
        self._changes[keys.job(record.id)] = None
        self._changes[keys.order(record.seq)] = None
        for letter in self._apart.pop(record.id, ()):
            self._changes[keys.part(record.id, letter)] = None
        if record.damage is not None:
            # it may not have said what lies apart
            self._changes |= {keys.part(record.id, part.letter): None for part in records.PARTS}
            self._changes[keys.damaged(record.id)] = None

    def changed(self, record: Record) -> None:
        """Write a job that was changed."""
        self._changed[record.id] = record

    def beat(self, server: ServerRecord) -> None:
        """Keep a server that lives; one that works in the process of the owner ends with that."""
        self.servers[server.id] = server
        # those that work through somebody who serves have processes of their own
        if server.details.get(SERVED) != "yes" and self._served_under.get(server.id) != self.ownership:
            self._served_under[server.id] = self.ownership

    def forget_server(self, server_id: str) -> None:
        """Forget a server."""
        self.servers.pop(server_id, None)
        self._served_under.pop(server_id, None)

    def inherit(self, ended: str) -> set[str]:
        """Return the servers of an ownership that has ended; from now on they are of this one."""
        found = {server_id for server_id, ownership in self._served_under.items() if ownership == ended}
        for server_id in found:
            self._served_under[server_id] = self.ownership
        return found

    def put_values(self, values: Mapping[bytes, bytes | None]) -> None:
        """Write the caller's own values; None deletes."""
        for key, value in values.items():
            self._changes[keys.value(key)] = value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a value; None deletes."""
        self._changes[key] = value

    def take_place(self, record: Record, index: bytes, place: bytes, *, first: bool) -> None:
        """Let a job, which stands nowhere, stand at `place`; `first` when nobody else stands in this index."""
        self._places[record.id] = place
        self._changes[place] = b""
        front = self._fronts.get(index)
        if front is None and first:
            front = self._fronts[index] = Front(index, empty=True)
            self._begins.pop(index, None)
        if front is not None:
            front.add(place)
        elif place < self._begins.get(index, index):
            self._begins[index] = place
        self._changed[record.id] = record

    def leave_place(self, record: Record) -> bool:
        """Let a job stand nowhere; return whether it stood anywhere."""
        place = self._places.pop(record.id, None)
        if place is None:
            return False
        self._changes[place] = None
        # the record still says where it stands, but maybe not when
        front = self._fronts.get(index_of(record))
        if front is not None:
            front.remove(place)
        return True

    async def find(self, ids: Iterable[JobId], parts: Collection[records.Part] = records.PARTS) -> None:
        """Read these jobs, and who holds the unique keys that they hold or could take back.

        Of what lies apart only `parts` are read: the others may not be looked at. A record that cannot be read has
        stand-ins, and says so by its `damage`.
        """
        wanted = list(dict.fromkeys(ids))
        new = await self._load(wanted, parts)
        if new:
            await self._find_places(new)
        await self._read_beside(wanted, parts)

    async def _load(self, ids: Iterable[JobId], parts: Collection[records.Part]) -> dict[JobId, Loaded]:
        """Read those of these jobs that are not in memory, and stand where their records say; return them."""
        missing = [job_id for job_id in ids if not self._jobs.has_read(job_id)]
        if not missing:
            return {}
        new = await join_parts(self._database, await load_kept(self._database, missing), parts)
        self._jobs.absent.update(job_id for job_id in missing if job_id not in new)
        for job_id, loaded in new.items():
            self._jobs[job_id] = record = loaded.record
            self._places[job_id] = index_of(record) + place_of(record)
            if apart := records.apart_of(record, loaded.main, parts, loaded.lost):
                self._apart[job_id] = apart
            if loaded.unread is not None:
                self._damaged[job_id] = loaded
                if await self._database.get(keys.damaged(job_id)) is not None:
                    # what was found first is what it can be mended by
                    self._damaged[job_id] = loaded._replace(main=b"")
            elif loaded.lost and record.damage is None:
                self._log_lost(job_id, loaded.lost.values())
        return new

    async def _find_places(self, new: Mapping[JobId, Loaded]) -> None:
        """Look where jobs stand that were read by their ids: a damaged record may not say it, or not truly."""
        places = await find_places(self._database, [loaded.record for loaded in new.values()])
        for job_id, loaded in new.items():
            place = places.get(job_id)
            if place is not None and (job_id in self._damaged or place != self._places[job_id]):
                self._fit(loaded, place)
            elif place is None and job_id in self._damaged:
                # without a record and without a place there is nothing that a call could change
                self._forget_jobs([job_id])
                self._jobs.absent.add(job_id)

    def _fit(self, loaded: Loaded, place: bytes) -> None:
        """Let a job stand at the place at which it was met, and have a damaged record."""
        record = loaded.record
        is_known = record.id in self._damaged
        main = b"" if record.damage is not None else loaded.main
        fit(DamagedRecord(record, loaded.unread or ()), place)
        self._places[record.id] = place
        if not is_known:
            self._damaged[record.id] = Loaded(record, main, unread=())

    async def _read_beside(self, ids: Iterable[JobId], parts: Collection[records.Part]) -> None:
        if self._apart:
            await self._read_parts([job_id for job_id in ids if job_id in self._apart], parts)
        records_read = map(self._jobs.get, ids)
        held = [record.hold.name for record in records_read if record is not None and record.hold is not None]
        if held:
            await self.read_holders(held)

    async def _read_parts(self, ids: Iterable[JobId], parts: Collection[records.Part]) -> None:
        """Read what was left out when these jobs were read first."""
        unread = [
            (job_id, part) for job_id in ids for part in parts if self._apart[job_id].get(part.letter) is records.UNREAD
        ]
        values = await gets(self._database, [keys.part(job_id, part.letter) for job_id, part in unread])
        for (job_id, part), value in zip(unread, values, strict=True):
            record = self._jobs[job_id]
            why = give_part(record, part, value)
            read = getattr(record, part.field) if why is None else records.LOST
            self._apart[job_id] = {**self._apart[job_id], part.letter: read}
            if why is not None:
                await self._lose(record, part, why)

    async def _lose(self, record: Record, part: records.Part, why: str) -> None:
        """Know that a part of a job cannot be read: without its payload no worker can run it."""
        if part is not records.PAYLOAD:
            self._log_lost(record.id, [f"{part.field} {why}"])
        elif record.damage is None:
            record.damage = f"{part.field} {why}"
            main = await self._database.get(keys.job(record.id))
            self._damaged[record.id] = Loaded(record, main or b"", unread=[part.field])

    def _log_lost(self, job_id: JobId, reasons: Iterable[str]) -> None:
        log.log(f"job {job_id} goes on without a part of its record: %s", "; ".join(reasons))

    async def read_holders(self, names: Iterable[str]) -> None:
        """Read who holds these unique keys."""
        missing = [name for name in dict.fromkeys(names) if not self._holders.has_read(name)]
        if missing:
            values = await gets(self._database, [keys.hold(name) for name in missing])
            for name, value in zip(missing, values, strict=True):
                self._holders.read(name, value)

    async def records(self, places: list[bytes], parts: Collection[records.Part] = records.PARTS) -> list[Record]:
        """Return the jobs that stand at these places, with these of the parts that lie apart.

        Damaged ones are among them: those whose records cannot be read, are not there, or say another place.
        """
        ids = [keys.id_of(place) for place in places]
        new = await self._load(ids, parts)
        if self._damaged or list(map(self._places.get, ids)) != places:
            ids = [keys.id_of(place) for place in places if self._stands_at(place, new)]
        await self._read_beside(ids, parts)
        return [self._jobs[job_id] for job_id in ids]

    def _stands_at(self, place: bytes, new: Mapping[JobId, Loaded]) -> bool:
        """Whether a job stands at a place of an index, whatever its record says, if that was read just now."""
        job_id = keys.id_of(place)
        if job_id in self._jobs.absent:
            missing = read_damaged(job_id, None)
            self._jobs[job_id] = missing.record
            self._fit(Loaded(missing.record, b"", unread=missing.fields), place)
        elif job_id in new and (job_id in self._damaged or place != self._places[job_id]):
            self._fit(new[job_id], place)
        elif place != self._places[job_id]:
            log.log("job %s stands in two places: the one that its record does not name is deleted", job_id)
            self._changes[place] = None
            for front in self._fronts.values():
                front.remove(place)
        return place == self._places[job_id]

    def set_aside(self, record: Record) -> None:
        """Make a job dead that no worker can run, as its record is damaged."""
        record.last_error = reason = dead_reason(record.damage or "")
        self.ends(record, State.DEAD, self.now, keep=True)
        logger.error("job %s of queue %r is dead: %s", record.id, record.queue, reason)

    async def mend(self, ids: Iterable[JobId]) -> None:
        """Read again what was found damaged of these jobs, which have ended: it may have been repaired since."""
        for job_id in ids:
            record = self._jobs.get(job_id)
            if record is None or record.damage is None or not record.state.finished:
                continue
            main = await self.value(keys.damaged(job_id))
            if main is not None:
                [loaded] = (await join_parts(self._database, {job_id: main}, records.PARTS)).values()
                self._mend(record, loaded)

    def _mend(self, damaged: Record, loaded: Loaded) -> None:
        record, job_id = loaded.record, damaged.id
        if record.damage is not None or (record.queue, record.seq) != (damaged.queue, damaged.seq):
            return
        record.state, record.finished_at, record.delivery = damaged.state, damaged.finished_at, damaged.delivery
        record.history, record.log = damaged.history or record.history, damaged.log or record.log
        self._jobs[job_id] = record
        self._damaged.pop(job_id, None)
        self._apart[job_id] = {
            **self._apart.get(job_id, records.NOTHING_APART),
            **records.apart_of(record, loaded.main, records.PARTS, loaded.lost),
        }
        self._changes[keys.damaged(job_id)] = None
        self.changed(record)

    async def value(self, key: bytes) -> bytes | None:
        """Return what is under a key now."""
        return self._changes[key] if key in self._changes else await self._database.get(key)

    async def scan(self, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        """Return what lies under the keys from `start` to `end` now."""
        await self.write()
        return await self._database.scan(start, end, limit=limit)

    async def front(self, index: bytes, count: int) -> Front:
        """Return the front of an index with at least `count` keys, or all there are."""
        front = self._fronts.get(index)
        if front is None:
            front = self._fronts[index] = Front(index, empty=False, begin=self._begins.pop(index, None))
        if front.lacks(count):
            await self.write()
            await front.fill(self._database, count)
        return front

    async def snapshot(self) -> View:
        """Return a view of what was written by now."""
        view = await self._database.snapshot()
        return FromFronts(view, {index: front.begin for index, front in self._fronts.items()})

    def begin_of(self, index: bytes) -> bytes | None:
        """Return what no key of an index comes before; None where that is not known."""
        front = self._fronts.get(index)
        return self._begins.get(index) if front is None else front.begin

    async def write(self) -> None:
        """Write what was changed, in one piece. It is not durable by that."""
        changes = self._take_changes()
        if changes:
            try:
                await self._database.write(changes)
            except BaseException:
                self.torn = True
                raise

    def rest(self) -> None:
        """Forget what need not stay in memory; everything was written."""
        # hardly ever does anybody ask for them again
        self._forget_jobs([job_id for job_id in self._finished if job_id in self._jobs])
        self._finished.clear()
        if self._damaged:
            # a repaired record is read without opening the store again
            self._forget_jobs([job_id for job_id in self._damaged if job_id in self._places])
            self._damaged.clear()
        self._jobs.absent.clear()
        self._holders.forget()
        if self._apart:
            # large ones stay while they run, and no longer
            self._forget_jobs([job_id for job_id in self._apart if self._jobs[job_id].state is not State.RUNNING])
        if len(self._jobs) > JOBS_KEPT:
            idle = [job_id for job_id, record in self._jobs.items() if record.state is not State.RUNNING]
            self._forget_jobs(idle[: max(0, len(idle) - JOBS_KEPT // 2)])
        if len(self._fronts) > FRONTS_KEPT:
            self._begins |= {index: front.begin for index, front in self._fronts.items()}
            self._fronts.clear()

    def _forget_jobs(self, ids: Iterable[JobId]) -> None:
        for job_id in ids:
            del self._jobs[job_id]
            del self._places[job_id]
            self._apart.pop(job_id, None)

    def _take_changes(self) -> dict[bytes, bytes | None]:
        changes = self._changes.copy()
        self._changes.clear()
        for record in self._changed.values():
            self._write_job(record, changes)
            if record.state.finished:
                self._finished.add(record.id)
        self._changed.clear()
        for queue in self._touched:
            changes[keys.queue_record(queue.name)] = records.encode(queue.kept())
        self._touched.clear()
        self.minutes.write(changes)
        if changes:
            changes[keys.COUNTERS] = records.encode(self.counters)
        return changes

    def _write_job(self, record: Record, changes: dict[bytes, bytes | None]) -> None:
        if (found := self._damaged.get(record.id)) is not None and found.main:
            changes[keys.damaged(record.id)] = found.main
        before = self._apart.get(record.id, records.NOTHING_APART)
        main, apart, written = records.split(record, before)
        changes[keys.job(record.id)] = main
        for letter, part in written.items():
            changes[keys.part(record.id, letter)] = part
        for letter in before:
            if letter not in apart:
                changes[keys.part(record.id, letter)] = None
        if apart:
            self._apart[record.id] = apart
        elif before:
            del self._apart[record.id]

    def _write_named(self, family: bytes, key: str, found: Schedule | ServerRecord | None) -> None:
        self._changes[keys.named(family, key)] = None if found is None else records.encode(found)

    def _next_revision(self) -> int:
        self.counters.revision += 1
        return self.counters.revision
