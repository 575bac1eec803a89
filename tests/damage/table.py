"""The table of damaged records: each field of a job, damaged in each way, met by each operation of a store.

A store takes part by a module `tests/damage/<name>.py` with a value `STORE: DamagedStore`. It says which fields a
record has, how the stored bytes of one field are damaged, and which fields an operation cannot do without. All else is
here, and `test_damage.py` runs the table of each module that is there.

`run(store)` opens an empty store for each operation. It enqueues three jobs for each field and damage, in a queue of
their own: the first is the one that is damaged, two sound neighbours are behind it. It brings them to the state that
the operation works on, damages the first ones, and runs the operation. A cell is a word for what became of the damaged
job. `AssertionError` is raised when a neighbour was not handled fully, or when the damaged job ended in a way that the
rules do not allow:

- A claim gives a job whose record reads ("done"), and sets others aside: "set aside".
- Another operation does its work ("done"), makes the job dead ("dead"), or leaves it ("stays"). It leaves a job only
  where the damaged field is one of `needed_by`.
- A list or page shows the job: "shown", or "damaged" when it names the field that does not read. Where the field is
  one of `needed_by`, it may answer that there is no such job ("not found").
- A move takes the job along ("done") or names it in the end with its damage ("stays").

    python -m tests.damage.table sqlite

writes the table of a store into `docs/reference/damaged-records.md`, between the marks of that store.
"""

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tests.each_store import new_url
from tests.http.dashboard.given_dashboard import GivenDashboard
from windlass.api import jobs as api_jobs
from windlass.client.client import Client
from windlass.client.mover import Carried, move
from windlass.client.why import why
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure, Job, NewJob, Note, Progress, Token
from windlass.core.looks import DeadJob
from windlass.core.requests import ClaimRequest, RescueRequest, Settled, Settlement, SettleResult
from windlass.core.retention import Keep, Retention
from windlass.core.settings import QueueSettings, resolve
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToRetry, ToSucceeded, Verdict
from windlass.system import TaskSpawn
from windlass.testing import FakeClock, SeededRng

DAMAGES: Final = ("wrong type", "empty", "huge", "out of range", "not UTF-8", "missing")
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "damaged-records.md"
REFUSED: Final = "refused by the database"
NONE: Final = "-"
ALL: Final = 100_000
AT_ONCE: Final = 50
LEASE: Final = timedelta(minutes=1)
RETENTION: Final = Retention(Keep(dead=timedelta(days=1)))
FAILED: Final = Failure("not yet", "ValueError", "a traceback")

Damager: TypeAlias = Callable[[Job, str, str], Awaitable[bool | None]]
"""Damages a field of a stored job in one of `DAMAGES`. It returns False when the database refuses to store such a
value, and None when there is no such damage of this field, for example an integer that is not UTF-8."""


class DamagedStore(NamedTuple):
    """How the records of one store are damaged."""

    name: str
    """The store in `tests.each_store`."""
    title: str
    fields: Sequence[str]
    """The fields of a record, by the names of `Job` where it has them."""
    needed_by: Mapping[str, Collection[str]]
    """For the name of an operation, the fields that it finds a job by. Such a damaged job may stay as it is."""
    damager: Callable[[str, Store], AbstractAsyncContextManager[Damager]]
    """Opens what damages the jobs at a URL, where the given store is open too."""


class Case(NamedTuple):
    """A damaged job and its neighbours."""

    field: str
    damage: str
    queue: str
    job: Job
    neighbours: Sequence[Job]

    def __str__(self) -> str:
        """Name the case in a failure."""
        return f"{self.field}, {self.damage}"


Cells: TypeAlias = dict[tuple[str, str], str]
"""What became of the damaged job, by field and damage."""


class World:
    """An open store with the cases of one operation."""

    def __init__(self, client: Client, clock: FakeClock, needed: Collection[str]) -> None:
        self.client = client
        self.store = client.store
        self.clock = clock
        self.cases: list[Case] = []
        self.cells: Cells = {}
        self.tokens: dict[JobId, Token] = {}
        self._needed = needed

    async def enqueue(self, store: DamagedStore) -> None:
        """Enqueue three jobs for each case. Each fails once, so that it has an error, a history and a log."""
        named = [(field, damage) for field in store.fields for damage in DAMAGES]
        queues = [f"q{number:03}" for number in range(len(named))]
        await self.client.enqueue_many([_new_job(queue, at) for queue in queues for at in range(3)])
        await self.claim_all(queues)
        await self.store.note(
            [Note(id, token, Progress(1, 2, "half"), [("info", "begun")]) for id, token in self.tokens.items()]
        )
        await self.settle_all(ToRetry(timedelta(0), FAILED))
        found = sorted(await self.jobs(), key=lambda job: (job.queue, job.seq))
        jobs = {queue: list(each) for queue, each in groupby(found, lambda job: job.queue)}
        for (field, damage), queue in zip(named, queues, strict=True):
            self.cases.append(Case(field, damage, queue, jobs[queue][0], jobs[queue][1:]))

    async def claim_all(self, queues: Sequence[str] = ()) -> None:
        """Claim every job."""
        request = ClaimRequest(queues or [case.queue for case in self.cases], ALL, LEASE, worker="tester:1")
        while claims := (await self.store.claim(request)).jobs:
            self.tokens |= {claim.job.id: claim.token for claim in claims}

    async def settle_all(self, verdict: Verdict) -> None:
        """End every claim by `verdict`."""
        await self.store.settle([Settlement(id, token, verdict) for id, token in self.tokens.items()])
        self.tokens = {}

    async def damage(self, store: DamagedStore, url: str) -> None:
        """Damage the first job of each case; a case that cannot be is left out."""
        async with store.damager(url, self.store) as damage:
            done = [(case, await damage(case.job, case.field, case.damage)) for case in self.cases]
        for case, inflicted in done:
            self.put(case, NONE if inflicted is None else REFUSED)
        self.cases = [case for case, inflicted in done if inflicted]

    async def jobs(self) -> list[Job]:
        """Return every job."""
        return await self.store.jobs(JobFilter(), after=None, limit=ALL)

    def put(self, case: Case, word: str) -> None:
        """Write a cell."""
        self.cells[case.field, case.damage] = word

    def needs(self, case: Case) -> bool:
        """Whether the operation may leave the damaged job of this case as it is."""
        return case.field in self._needed

    def left(self, case: Case, word: str = "stays") -> None:
        """Write that the operation did nothing to the damaged job, where it may."""
        assert self.needs(case), f"{case}: {word}"
        self.put(case, word)


def _new_job(queue: str, at: int) -> NewJob:
    return NewJob(
        queue,
        {"at": at},
        kind=f"kind-{at}",
        max_attempts=5,
        unique=Unique(f"{queue}-{at}", until="finished"),
        headers={"name": "value"},
        tenant="acme",
    )


class Found:
    """The jobs of a store after an operation, by id and by sequence number: one of them may be damaged."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._by_id = {job.id: job for job in jobs}
        self._by_seq = {job.seq: job for job in jobs}

    def has(self, job: Job) -> bool:
        return job.id in self._by_id

    def damaged(self, case: Case) -> Job | None:
        return self._by_id.get(case.job.id) or self._by_seq.get(case.job.seq)

    def neighbours(self, case: Case) -> list[State | None]:
        found = [self._by_id.get(neighbour.id) for neighbour in case.neighbours]
        assert all(job is None or job.damage is None for job in found), case
        return [None if job is None else job.state for job in found]

    def check(self, case: Case, *states: State | None) -> Job:
        """Check the states of the neighbours, and that the damaged job is still there; return it."""
        assert self.neighbours(case) == list(states), f"{case}: the neighbours are {self.neighbours(case)}"
        job = self.damaged(case)
        assert job is not None, f"{case}: the job is gone"
        return job


async def _found(world: World) -> Found:
    return Found(await world.jobs())


def _word(case: Case, job: Job) -> str:
    """Return the word for a job that is shown."""
    if job.damage is None:
        return "shown"
    assert case.field not in Job._fields or case.field in job.damage, f"{case}: {job.damage}"
    return "damaged"


# what an operation works on


async def _pending(world: World) -> None:
    """Leave the jobs as they are."""


async def _running(world: World) -> None:
    await world.claim_all()


async def _scheduled(world: World) -> None:
    await world.claim_all()
    await world.settle_all(ToRetry(timedelta(minutes=1), FAILED))


async def _dead(world: World) -> None:
    await world.claim_all()
    await world.settle_all(ToDead(FAILED))


async def _succeeded(world: World) -> None:
    await world.claim_all()
    await world.settle_all(ToSucceeded(b'"result"', "json"))


# the operations


async def _claim(world: World) -> None:
    given = {case.queue: await _claimed(world, case.queue) for case in world.cases}
    found = await _found(world)
    for case in world.cases:
        claimed = given[case.queue]
        for neighbour in case.neighbours:
            assert neighbour.payload in [job.payload for job in claimed], f"{case}: a neighbour was not given"
        job = found.check(case, State.RUNNING, State.RUNNING)
        if len(claimed) > len(case.neighbours):
            assert all(each.damage is None for each in claimed), case
            assert msgspec.json.encode([api_jobs.told(each) for each in claimed])
            world.put(case, "done")
        elif _is_set_aside(job):
            await _check_set_aside(world, case, job)
            world.put(case, "set aside")
        else:
            world.left(case)


async def _claimed(world: World, queue: str) -> list[Job]:
    """Claim one job after the other: a job that is set aside takes the place of no other."""
    jobs: list[Job] = []
    while claims := (await world.store.claim(ClaimRequest([queue], 1, LEASE, worker="tester:1"))).jobs:
        jobs += [claim.job for claim in claims]
    return jobs


def _is_set_aside(job: Job) -> bool:
    return job.state is State.DEAD and "DamagedRecord" in (job.last_error or "")


async def _check_set_aside(world: World, case: Case, job: Job) -> None:
    assert "DamagedRecord" in (job.last_error or ""), f"{case}: {job.last_error}"
    assert case.field not in Job._fields or case.field in (job.last_error or ""), f"{case}: {job.last_error}"
    # a field that is none of a job may hold the number of its attempts
    may_differ = case.field == "attempt" or case.field not in Job._fields
    assert may_differ or job.attempt == case.job.attempt, f"{case}: an attempt was charged"
    if not world.needs(case):
        [row] = await world.store.stats(case.queue)
        assert (row.pending, row.running, row.dead, row.totals.dead) == (0, 2, 1, 1), f"{case}: {row}"
        again = await world.client.enqueue_many([_new_job(case.queue, 0)])
        assert again[0].created, f"{case}: the unique key is still held"


async def _ack(world: World) -> None:
    await _settle(world, ToSucceeded(), State.SUCCEEDED)


async def _nack(world: World) -> None:
    await _settle(world, ToRetry(timedelta(0), FAILED), State.PENDING)


async def _settle(world: World, verdict: Verdict, end: State) -> None:
    results: dict[str, Sequence[SettleResult]] = {}
    for case in world.cases:
        ids = [case.job.id, *(job.id for job in case.neighbours)]
        results[case.queue] = await world.store.settle([Settlement(id, world.tokens[id], verdict) for id in ids])
    found = await _found(world)
    for case in world.cases:
        first, *others = results[case.queue]
        assert others == [Settled.DONE, Settled.DONE], f"{case}: {others}"
        job = found.check(case, end, end)
        if first is Settled.DONE:
            assert job.state is end, f"{case}: {job.state}"
            world.put(case, "done")
        else:
            world.left(case)


async def _rescue(world: World) -> None:
    world.clock.advance(LEASE)
    while await world.store.rescue(RescueRequest(limit=AT_ONCE), RETENTION):
        pass
    found = await _found(world)
    for case in world.cases:
        job = found.check(case, State.PENDING, State.PENDING)
        match job.state:
            case State.PENDING:
                world.put(case, "done")
            case State.DEAD if _is_set_aside(job) or "state" not in (job.damage or ""):
                reasons = ("DamagedRecord", "LeaseExpired")
                assert any(reason in (job.last_error or "") for reason in reasons), f"{case}: {job.last_error}"
                world.put(case, "dead")
            case _:
                world.left(case)


async def _promote(world: World) -> None:
    world.clock.advance(timedelta(minutes=1))
    while await world.store.promote(limit=AT_ONCE):
        pass
    found = await _found(world)
    for case in world.cases:
        job = found.check(case, State.PENDING, State.PENDING)
        if job.state is State.PENDING:
            world.put(case, "done")
        elif _is_set_aside(job):
            world.put(case, "set aside")
        else:
            world.left(case)


async def _prune(world: World) -> None:
    world.clock.advance(timedelta(days=2))
    while await world.store.prune(RETENTION, limit=AT_ONCE):
        pass
    found = await _found(world)
    for case in world.cases:
        assert found.neighbours(case) == [None, None], f"{case}: {found.neighbours(case)}"
        if found.damaged(case) is None:
            world.put(case, "done")
        else:
            world.left(case)


async def _list(world: World) -> None:
    jobs = await world.jobs()
    newest = [job async for job in _newest(world.store)]
    await world.store.stats()
    await world.store.waiting()
    for case in world.cases:
        # of all states, though one may be damaged, and by the texts that a search looks at
        assert await world.store.jobs(JobFilter(queue=case.queue), after=None, limit=ALL)
    assert msgspec.json.encode([api_jobs.told(job) for job in jobs])
    for found in (Found(jobs), Found(newest)):
        for case in world.cases:
            job = found.check(case, State.RUNNING, State.RUNNING)
            world.put(case, _word(case, job))


async def _newest(store: Store) -> AsyncIterator[Job]:
    before: int | None = None
    while True:
        page = await store.newest(JobFilter(), before=before, limit=ALL, most=ALL)
        for job in page.jobs:
            yield job
        if (before := page.next) is None:
            return


async def _get(world: World) -> None:
    for case in world.cases:
        job, *others = await world.store.get([case.job.id, *(each.id for each in case.neighbours)])
        assert [None if each is None else (each.state, each.damage) for each in others] == [(State.SUCCEEDED, None)] * 2
        assert all(each is not None and each.history and each.log for each in others), case
        if job is None:
            world.left(case, "not found")
        else:
            assert msgspec.json.encode(api_jobs.told(job))
            world.put(case, _word(case, job))


async def _why(world: World) -> None:
    for case in world.cases:
        answer = await why(world.store, case.job.id)
        assert answer.reasons, case
        if answer.job is None:
            world.left(case, "not found")
        elif answer.job.damage is None:
            world.put(case, "shown")
        else:
            assert "damaged" in answer.reasons[0].message, f"{case}: {answer.reasons[0]}"
            world.put(case, _word(case, answer.job))
        neighbour = await why(world.store, case.neighbours[0].id)
        assert neighbour.job is not None, case


async def _dead_pages(world: World) -> None:
    """Check that pages of dead jobs lead past each damaged one, and leave none out that stands among the dead."""
    every = await world.store.dead(None, before=None, limit=ALL)
    paged: list[DeadJob] = []
    while page := await world.store.dead(None, before=paged[-1].death if paged else None, limit=7):
        paged += page
        assert len(paged) <= len(every)
    assert paged == every
    assert every == sorted(every, key=lambda dead: dead.death, reverse=True)
    assert msgspec.json.encode([api_jobs.told(dead.job) for dead in every])
    found = Found([dead.job for dead in every])
    for case in world.cases:
        assert found.neighbours(case) == [State.DEAD, State.DEAD], f"{case}: {found.neighbours(case)}"
        if case.field not in ("state", "queue"):
            found.check(case, State.DEAD, State.DEAD)


async def _dashboard(world: World) -> None:
    await _dead_pages(world)
    given = GivenDashboard(world.client)
    for path in ("/", "/jobs", "/dead", "/schedules", "/servers", "/audit"):
        assert (await given.get(path)).status == 200, path
    for case in world.cases:
        reply = await given.get(f"/jobs?queue={case.queue}")
        assert reply.status == 200, f"{case}: {reply.body!r}"
        for neighbour in case.neighbours:
            assert neighbour.id.encode() in reply.body, f"{case}: a neighbour is not listed"
        page = await given.get(f"/jobs/{case.job.id}")
        if page.status == 404:
            world.left(case, "not found")
            continue
        assert page.status == 200, f"{case}: {page.body!r}"
        [job] = await world.store.get([case.job.id])
        assert job is not None
        assert (b"record is damaged" in page.body) == (job.damage is not None), case
        world.put(case, _word(case, job))


async def _move(world: World) -> None:
    target = _new_client(open_store("memory://", clock=world.clock, rng=SeededRng(2)), world.clock)
    async with target:
        carried = await move(world.client, target, to="memory://", wait=0, told=_unheard)
        moved = await target.store.jobs(JobFilter(), after=None, limit=ALL)
        found, keys = Found(moved), {job.unique_key for job in moved}
        named = dict(carried.damaged)
        left = await _found(world)
        for case in world.cases:
            assert found.neighbours(case) == [State.PENDING, State.PENDING], f"{case}: {found.neighbours(case)}"
            if found.has(case.job) or case.job.unique_key in keys:
                world.put(case, "done")
                continue
            job = left.damaged(case)
            assert job is not None, f"{case}: the job is gone"
            if job.id in named:
                assert named[job.id] == job.damage, case
                world.put(case, "stays")
            else:
                world.left(case)


def _unheard(carried: Carried) -> None:
    """Take no notice of the progress of a move."""


class Operation(NamedTuple):
    """A column of the table: what the jobs are brought to, and what is done then."""

    begin: Callable[[World], Awaitable[None]]
    run: Callable[[World], Awaitable[None]]


OPERATIONS: Final = {
    "claim": Operation(_pending, _claim),
    "ack": Operation(_running, _ack),
    "nack": Operation(_running, _nack),
    "rescue": Operation(_running, _rescue),
    "promote": Operation(_scheduled, _promote),
    "prune": Operation(_dead, _prune),
    "list": Operation(_running, _list),
    "get": Operation(_succeeded, _get),
    "why": Operation(_pending, _why),
    "dashboard": Operation(_dead, _dashboard),
    "move": Operation(_pending, _move),
}


async def run(store: DamagedStore, operation: str) -> Cells:
    """Return a column of the table of a store."""
    column = OPERATIONS[operation]
    async with AsyncExitStack() as stack:
        url = stack.enter_context(new_url(store.name))
        clock = FakeClock()
        client = await stack.enter_async_context(_new_client(open_store(url, clock=clock, rng=SeededRng()), clock))
        world = World(client, clock, store.needed_by.get(operation, ()))
        await world.enqueue(store)
        await column.begin(world)
        await world.damage(store, url)
        await column.run(world)
    return world.cells


def _new_client(store: Store, clock: FakeClock) -> Client:
    return Client(
        store,
        resolve(QueueSettings(), None),
        codec=JSON,
        clock=clock,
        rng=SeededRng(1),
        spawn=TaskSpawn(),
        poll_interval=1.0,
        worker="tester",
    )


def rendered(store: DamagedStore, columns: Mapping[str, Cells]) -> str:
    """Return the table of a store: damages of a field that end alike share a row."""
    lines = [f"| field | damage | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for field in store.fields:
        ends = {damage: tuple(cells.get((field, damage), NONE) for cells in columns.values()) for damage in DAMAGES}
        for end in dict.fromkeys(ends.values()):
            if set(end) != {NONE}:
                damages = ", ".join(damage for damage in DAMAGES if ends[damage] == end)
                # the database refuses a value whatever is to be done
                words = [REFUSED, *[""] * (len(end) - 1)] if set(end) == {REFUSED} else end
                lines.append(f"| `{field}` | {damages} | {' | '.join(words)} |")
    return "\n".join(lines)


def in_page(store: DamagedStore) -> tuple[str, dict[str, Cells]]:
    """Return the table of a store that is in the page, and its columns."""
    table = _parts(store)[1].strip("\n")
    columns: dict[str, Cells] = {operation: {} for operation in OPERATIONS}
    for line in table.splitlines()[2:]:
        field, damages, *words = line.strip("| ").split(" | ")
        words = [REFUSED] * len(columns) if words == [REFUSED] else words
        for damage in damages.split(", "):
            for cells, word in zip(columns.values(), words, strict=True):
                if word != NONE:
                    cells[field.strip("`"), damage] = word
    return table, columns


def write_page(store: DamagedStore, table: str) -> None:
    """Put the table of a store into the page."""
    before, _, after = _parts(store)
    PAGE.write_text(f"{before}\n{table}\n{after}")


def _parts(store: DamagedStore) -> tuple[str, str, str]:
    begin, end = f"<!-- {store.title}: made by tests/damage/table.py -->", f"<!-- end of {store.title} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    table, _, after = rest.partition(end)
    return f"{before}{begin}", table, f"{end}{after}"


def stores() -> list[DamagedStore]:
    """Return the stores that take part."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    others = ("table", "test_damage")
    return [importlib.import_module(f"tests.damage.{name}").STORE for name in names if name not in others]


def main() -> None:
    """Write the tables of the stores that are named on the command line, or of all."""
    for store in stores():
        if store.name in sys.argv[1:] or len(sys.argv) == 1:
            columns = {operation: asyncio.run(run(store, operation)) for operation in OPERATIONS}
            write_page(store, rendered(store, columns))


if __name__ == "__main__":
    main()
