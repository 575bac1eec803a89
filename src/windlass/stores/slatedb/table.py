"""The records of the moment: what the calls under way are about, and nothing else of what the database has.

Whatever a move looks at was read before; whatever it changes is gathered here, and goes into the database in one write.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from windlass.core.clock import Rng
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.looks import SERVED, ServerRecord
from windlass.core.moving import Moved
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.topics import Topic
from windlass.kit.moves import table
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record, new_record
from windlass.kit.moves.scheduling import Schedules
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import Damaged, cannot_be_read, lacks_a_part, lacks_its_record
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.front import FromFronts, Front
from windlass.stores.slatedb.holders import Holders
from windlass.stores.slatedb.known import Known, Written
from windlass.stores.slatedb.loading import find_records, gets
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
        self.damaged = Damaged()
        self.untold = Untold()
        self.repeats = Repeats()
        self.pruned_to: dict[bytes, bytes] = {}
        self._holders = Holders(self._changes)
        self.holds = Holds(self._holders)
        self._begins = {index: begin for kept in begin.queues.values() for index, begin in kept.begins}
        self.queues = {name: Queue(self, name, kept, self._touched.add) for name, kept in begin.queues.items()}
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

    async def read(self, ids: Iterable[JobId], parts: Collection[records.Part] = records.PARTS) -> None:
        """Read these jobs, and who holds the unique keys that they hold or could take back.

        Of what lies apart only `parts` are read: the others may not be looked at. Raises `StoreCorrupt` when one of
        them is damaged.
        """
        wanted = dict.fromkeys(ids)
        await self.find(wanted, parts)
        self.damaged.refuse(wanted)

    async def find(self, ids: Iterable[JobId], parts: Collection[records.Part] = records.PARTS) -> None:
        """Read these jobs as `read` does, but for those that are `damaged`, which may not be looked at."""
        wanted = self._sound(dict.fromkeys(ids))
        missing = [job_id for job_id in wanted if not self._jobs.has_read(job_id)]
        if missing:
            found, damaged = await find_records(self._database, missing, parts)
            self.damaged.add(damaged)
            self._jobs.absent.update(job_id for job_id in self._sound(missing) if job_id not in found)
            for job_id, loaded in found.items():
                self._jobs[job_id] = record = loaded.record
                self._places[job_id] = index_of(record) + place_of(record)
                if apart := records.apart_of(record, loaded.main, parts):
                    self._apart[job_id] = apart
        await self._read_parts([job_id for job_id in self._sound(wanted) if job_id in self._apart], parts)
        records_read = map(self._jobs.get, self._sound(wanted))
        held = [record.hold.name for record in records_read if record is not None and record.hold is not None]
        if held:
            await self.read_holders(held)

    def overlook(self, ids: Iterable[JobId]) -> None:
        """Let these damaged jobs count as not there, for the calls that are served now."""
        self._jobs.absent.update(ids)

    async def _read_parts(self, ids: Iterable[JobId], parts: Collection[records.Part]) -> None:
        """Read what was left out when these jobs were read first."""
        unread = [
            (job_id, part) for job_id in ids for part in parts if self._apart[job_id].get(part.letter) is records.UNREAD
        ]
        values = await gets(self._database, [keys.part(job_id, part.letter) for job_id, part in unread])
        damaged: dict[JobId, StoreCorrupt] = {}
        for (job_id, part), value in zip(unread, values, strict=True):
            if value is None:
                damaged[job_id] = lacks_a_part(job_id)
                continue
            try:
                read = part.decode(value)
            except ValueError as error:
                damaged[job_id] = cannot_be_read(job_id, error)
                continue
            setattr(self._jobs[job_id], part.field, read)
            self._apart[job_id] = {**self._apart[job_id], part.letter: read}
        self.damaged.add(damaged)

    def _sound(self, ids: Collection[JobId]) -> Collection[JobId]:
        """Return those of these jobs that are not known to be damaged."""
        return [job_id for job_id in ids if job_id not in self.damaged] if self.damaged else ids

    async def read_holders(self, names: Iterable[str]) -> None:
        """Read who holds these unique keys."""
        missing = [name for name in dict.fromkeys(names) if not self._holders.has_read(name)]
        if missing:
            values = await gets(self._database, [keys.hold(name) for name in missing])
            for name, value in zip(missing, values, strict=True):
                self._holders.read(name, value)

    async def records(self, places: Iterable[bytes], parts: Collection[records.Part] = records.PARTS) -> list[Record]:
        """Return the jobs that stand at these places, with these of the parts that lie apart, but for damaged ones."""
        ids = [keys.id_of(place) for place in places]
        await self.find(ids, parts)
        if not self._jobs.absent.isdisjoint(ids):
            self.damaged.add({job_id: lacks_its_record(job_id) for job_id in self._jobs.absent.intersection(ids)})
        return [self._jobs[job_id] for job_id in self._sound(ids)]

    async def value(self, key: bytes) -> bytes | None:
        """Return what is under a key now."""
        return self._changes[key] if key in self._changes else await self._database.get(key)

    async def scan(self, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        """Return what lies under the keys from `start` to `end` now."""
        await self.write()
        return await self._database.scan(start, end, limit=limit)

    async def front(self, index: bytes, count: int) -> Front:
        """Return the front of an index with at least `count` keys, or all there are, but for damaged jobs."""
        front = self._fronts.get(index)
        if front is None:
            front = self._fronts[index] = Front(index, empty=False, begin=self._begins.pop(index, None))
        while True:
            if front.lacks(count):
                await self.write()
                await front.fill(self._database, count)
            if not self.damaged or not front.put_aside(self.damaged.id_bytes, count):
                return front

    def aside(self, indexes: Iterable[bytes]) -> list[JobId]:
        """Return the damaged jobs that were met at the fronts of these indexes."""
        return [
            keys.id_of(place)
            for index in indexes
            if (front := self._fronts.get(index)) is not None
            for place in front.aside
        ]

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
