"""The processes that work on the store."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from windlass.api.operations import SERVERS
from windlass.api.shape import Asked
from windlass.client.claims import DEAD_AFTER
from windlass.client.look_back import look_through
from windlass.client.server_details import Presence, memory_of, presence, slots_of, stuck_in
from windlass.client.spoken import amount, progress_text
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId, job_id
from windlass.core.job import Job, Progress
from windlass.core.looks import SERVED, SERVES, JobPage, ServerRecord
from windlass.core.states import State
from windlass.engine.heart import SCHEDULING
from windlass.http.dashboard.carried_text import without_carried
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View

MOST: Final = 100
"""How many servers of each sort are shown; of more a part is found by its text."""
MOST_JOBS: Final = 500
"""How many running jobs are looked at."""
ENOUGH: Final = 0.1
"""Seconds after which the page shows those that were found."""
MOST_LOOKED: Final = 10_000
"""How many jobs the store looks through for them, where it has no index."""
MOST_HELD: Final = 50
"""How many jobs are shown of one server."""
MOST_ROWS: Final = 4
"""How many jobs of a server have room at once; others are scrolled to, so that no server moves because of another."""
MOST_NAMES: Final = 100
"""How many queues, kinds or stuck jobs are shown of one server."""


class ServersAsked(Asked, kw_only=True):
    """Which servers."""

    text: Annotated[str, Meta(max_length=200)] | None = None


class Held(NamedTuple):
    """The running jobs of one holder, the longest first, and for how many of them there is room at once."""

    jobs: Sequence[tuple[Job, str, str]]
    """Each with how far it says it is: in a word, and in full."""
    more: int
    rows: int


class Listed(NamedTuple):
    """A server, and what it runs."""

    server: ServerRecord
    presence: Presence
    running: int
    slots: int | None
    memory: int | None
    held: Held
    stuck: Sequence[tuple[str, JobId | None]]
    """What it says of jobs that did not end at their timeout, and their ids as far as they are some."""
    stuck_slots: int
    """How many slots those hold: each attempt of a job has its own."""
    serves: str | None
    served: bool
    schedules: bool
    """Whether it makes jobs of schedules."""


class Servers(View[ServersAsked]):
    """All servers by name, with what each runs now; those that are gone apart."""

    name: ClassVar = "servers"
    title: ClassVar = "Servers"
    path: ClassVar = "/servers"
    roles: ClassVar = SERVERS.roles
    asks = ServersAsked
    regions: ClassVar = ("servers",)

    async def look(self, seen: Seen, asked: ServersAsked) -> Facts:
        """Return the servers and the jobs that run."""
        # the time of the store, which stamps when a server was seen
        now, _ = await seen.once("store time", lambda: seen.store.schedules(()))
        known = await seen.once("servers", seen.store.servers)
        page = await seen.once("running jobs", lambda: _running(seen))
        held = held_by(page.jobs)
        chosen = sorted((each for each in known if _has(each, asked.text)), key=lambda each: (each.name, each.id))
        listed = [
            _listed(each, presence(each, now, DEAD_AFTER), held.get(each.id, ()), whole=page.next is None)
            for each in chosen
        ]
        here = [each for each in listed if each.presence != "gone"]
        gone = [each for each in listed if each.presence == "gone"]
        return {
            "here": here[:MOST],
            "gone": gone[:MOST],
            "more": max(len(here), len(gone)) > MOST,
            "most": MOST,
            "known": len(known),
            "live": sum(each.presence == "live" for each in here),
            "stopping": sum(each.presence == "stopping" for each in here),
            "silent": sum(each.presence == "silent" for each in here),
            "others": list(islice(_others(held, {each.id for each in known}), MOST)),
            "whole": page.next is None,
            "shown_jobs": len(page.jobs),
            "most_names": MOST_NAMES,
        }


async def _running(seen: Seen) -> JobPage:
    """Return the newest jobs that run, without what they carry: it is read some at a time, and forgotten."""

    async def step(before: int | None, limit: int) -> JobPage:
        return await seen.store.newest(JobFilter(state=State.RUNNING), before=before, limit=limit, most=MOST_LOOKED)

    found: list[Job] = []
    more: int | None = None
    async for page in look_through(step, most=MOST_JOBS, clock=seen.client.clock, seconds=ENOUGH):
        found += map(without_carried, page.jobs)
        more = page.next
    return JobPage(found, more)


def held_by(jobs: Sequence[Job]) -> Mapping[str | None, Sequence[Job]]:
    """Return running jobs by who holds them, in order of name, each one's longest first."""
    held: dict[str | None, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: (job.worker or "", job.claimed_at or job.run_at, job.seq)):
        held.setdefault(job.worker, []).append(job)
    return held


def _has(server: ServerRecord, text: str | None) -> bool:
    if text is None:
        return True
    looked_at = (server.id, server.host, str(server.pid), server.version, *server.queues, *server.kinds)
    return any(text.casefold() in each.casefold() for each in looked_at)


def _listed(server: ServerRecord, state: Presence, jobs: Sequence[Job], *, whole: bool) -> Listed:
    slots, stuck = slots_of(server), stuck_in(server)
    # its own count is some seconds old
    running = len(jobs) if whole else server.running
    return Listed(
        server=server,
        presence=state,
        running=running,
        slots=slots,
        memory=memory_of(server),
        held=_held(jobs, running if slots is None else slots),
        stuck=[(each, _id(each)) for each in dict.fromkeys(stuck)],
        stuck_slots=len(stuck),
        serves=server.details.get(SERVES),
        served=SERVED in server.details,
        schedules=server.details.get(SCHEDULING) != "off",
    )


def _others(held: Mapping[str | None, Sequence[Job]], servers: Collection[str]) -> Iterator[tuple[str | None, Held]]:
    return ((worker, _held(jobs, len(jobs))) for worker, jobs in held.items() if worker not in servers)


def _held(jobs: Sequence[Job], most: int) -> Held:
    shown = [(job, *_far(job.progress)) for job in jobs[:MOST_HELD]]
    return Held(shown, len(jobs) - len(shown), max(1, min(MOST_ROWS, most)))


def _far(progress: Progress | None) -> tuple[str, str]:
    if progress is None:
        return "", ""
    share = f"{max(0.0, min(1.0, progress.done / progress.total)):.0%}" if progress.total else amount(progress.done)
    return share, progress_text(progress)


def _id(text: str) -> JobId | None:
    with suppress(InvalidValue):
        return job_id(text)
    return None
