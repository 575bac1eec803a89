"""Every allowed change of a job's state, as calls of a store, and the steps that it goes through."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING
from windlass.connect import open_store
from windlass.core.job import Claim, Failure, Note, PreparedJob
from windlass.core.moving import Packed, Parcel
from windlass.core.requests import ClaimRequest, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import HOUR, MINUTE, a_job, a_schedule, firing, settlement, written

QUEUE: Final = "default"
KIND: Final = "work"
"""The kind of the job whose steps are looked at; the others are of other kinds."""
FAILED: Final = Failure("boom")
NOW: Final = timedelta(0)
KEEP_NONE: Final = Retention(Keep(NOW, NOW, NOW))

PENDING, SCHEDULED, RUNNING = State.PENDING, State.SCHEDULED, State.RUNNING
SUCCEEDED, DEAD, CANCELLED = State.SUCCEEDED, State.DEAD, State.CANCELLED


class Scene:
    """A store, and one job in it."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.job: PreparedJob = a_job(QUEUE, kind=KIND)
        self.held: Claim | None = None
        self.schedule: Schedule | None = None
        self.parcel = Parcel("move", QUEUE, 1, Packed((), ()))

    async def put(self, job: PreparedJob | None = None) -> None:
        """Enqueue the job."""
        self.job = job or self.job
        await self.store.enqueue([self.job])

    async def claim(self, lease: timedelta = MINUTE) -> Claim:
        """Claim the job."""
        [self.held] = (await self.store.claim(ClaimRequest((QUEUE,), 1, lease, {KIND}))).jobs
        return self.held

    async def settle(self, verdict: Verdict, *, keep: bool = True, then: PreparedJob | None = None) -> None:
        """Settle the claim of the job."""
        assert self.held is not None
        end = settlement(self.held, verdict, keep=keep)
        await self.store.settle([end if then is None else end._replace(then=[then])])

    async def renew(self) -> None:
        """Renew the claim of the job."""
        assert self.held is not None
        await self.store.renew([(self.job.id, self.held.token)], HOUR)

    async def note(self) -> None:
        """Write a line into the log of the job."""
        assert self.held is not None
        await self.store.note([Note(self.job.id, self.held.token, lines=[("info", "line")])])

    async def fire(self) -> None:
        """Let the schedule make the job."""
        assert self.schedule is not None
        await self.store.fire(firing(self.schedule, self.job))


Act: TypeAlias = Callable[[Scene], Awaitable[object]]


class Transition(NamedTuple):
    """A change of the job's state: `given` makes what is there before it, `act` is the call that makes it."""

    by: str
    """The move as `core.states` names it, or what else is done."""
    old: State | None
    new: State | None
    given: Act
    act: Act
    steps: tuple[str, ...]
    """The steps of the job, in their order."""


async def nothing(_: Scene) -> None:
    """Begin with an empty store."""


async def pending(scene: Scene) -> None:
    await scene.put()


async def scheduled(scene: Scene) -> None:
    await scene.put(a_job(QUEUE, kind=KIND, delay=HOUR))


async def due(scene: Scene) -> None:
    await scheduled(scene)
    scene.clock.advance(HOUR)


async def running(scene: Scene) -> None:
    await scene.put()
    await scene.claim()


def expired(max_attempts: int) -> Act:
    async def given(scene: Scene) -> None:
        await scene.put(a_job(QUEUE, kind=KIND, max_attempts=max_attempts))
        await scene.claim(NOW)

    return given


def ended(verdict: Verdict) -> Act:
    async def given(scene: Scene) -> None:
        await running(scene)
        await scene.settle(verdict)

    return given


def keyed(delay: timedelta | None = None) -> Act:
    """Enqueue a job that replaces the one that has its key."""
    unique = Unique("k", on_conflict="replace")
    return lambda scene: scene.store.enqueue([a_job(QUEUE, kind=KIND, delay=delay, unique=unique)])


async def before(scene: Scene) -> None:
    """Claim another job, which the job follows."""
    await scene.store.enqueue([a_job(QUEUE, kind="before")])
    [scene.held] = (await scene.store.claim(ClaimRequest((QUEUE,), 1, MINUTE, {"before"}))).jobs


async def timed(scene: Scene) -> None:
    scene.schedule = await written(scene.store, a_schedule(next_run_at=scene.clock.now()))


async def packed(scene: Scene) -> None:
    """Pack the job in another store."""
    other = open_store("memory://", clock=scene.clock, rng=SeededRng())
    await other.enqueue([scene.job, a_job(QUEUE, kind=KIND, delay=HOUR)])
    scene.parcel = Parcel("move", QUEUE, 1, await other.pack(QUEUE, limit=2))


def settled(verdict: Verdict, *, keep: bool = True) -> Act:
    return lambda scene: scene.settle(verdict, keep=keep)


def rescheduled(delay: timedelta | None) -> Act:
    return lambda scene: scene.store.reschedule([scene.job.id], None if delay is None else scene.clock.now() + delay)


async def lost(scene: Scene) -> None:
    """Let the claim of the job be rescued."""
    await expired(3)(scene)
    await rescue(scene)


async def cancel(scene: Scene) -> None:
    await scene.store.cancel([scene.job.id], KEEP_ALL)


async def retry(scene: Scene) -> None:
    await scene.store.retry([scene.job.id])


async def rescue(scene: Scene) -> None:
    assert await scene.store.rescue(RescueRequest(), KEEP_ALL)


async def rescue_to_dead(scene: Scene) -> None:
    assert await scene.store.rescue(RescueRequest(force=True, to="dead"), KEEP_ALL)


async def follow(scene: Scene) -> None:
    """Let the job follow the one that ends."""
    await scene.settle(ToSucceeded(), then=scene.job)


async def promote(scene: Scene) -> None:
    assert await scene.store.promote(limit=9) == 1


async def unpack(scene: Scene) -> None:
    assert await scene.store.unpack(scene.parcel)


async def delete(scene: Scene) -> None:
    await scene.store.delete([scene.job.id])


async def prune(scene: Scene) -> None:
    assert await scene.store.prune(KEEP_NONE, limit=9) == 1


async def let_go(scene: Scene) -> None:
    await scene.store.let_go(jobs=[scene.job.id])


async def pause(scene: Scene) -> None:
    await scene.store.set_paused(QUEUE, paused=True)


async def stale(scene: Scene) -> None:
    """Settle a claim that was rescued."""
    assert scene.held is not None
    assert await scene.store.settle([settlement(scene.held)]) == [Settled.LOST]


WAIT, RUN = (STARTS_WAITING,), (STARTS_RUNNING,)
STOP_AND_WAIT, STOP_AND_END = (STOPS_RUNNING, STARTS_WAITING), (STOPS_RUNNING, ENDS)

TRANSITIONS: Final[Sequence[Transition]] = (
    Transition("enqueue", None, PENDING, nothing, pending, WAIT),
    Transition("enqueue", None, SCHEDULED, nothing, scheduled, WAIT),
    Transition("enqueue", None, PENDING, before, follow, WAIT),
    Transition("enqueue", None, PENDING, timed, Scene.fire, WAIT),
    Transition("enqueue", None, PENDING, packed, unpack, (*WAIT, *WAIT)),
    Transition("promote", SCHEDULED, PENDING, due, promote, WAIT),
    Transition("claim", PENDING, RUNNING, pending, Scene.claim, RUN),
    Transition("claim", SCHEDULED, RUNNING, due, Scene.claim, (*WAIT, *RUN)),
    Transition("replace", PENDING, SCHEDULED, keyed(), keyed(HOUR), WAIT),
    Transition("replace", SCHEDULED, PENDING, keyed(HOUR), keyed(), WAIT),
    Transition("replace", PENDING, PENDING, keyed(), keyed(), WAIT),
    Transition("reschedule", PENDING, SCHEDULED, pending, rescheduled(HOUR), WAIT),
    Transition("reschedule", SCHEDULED, PENDING, scheduled, rescheduled(None), WAIT),
    Transition("reschedule", SCHEDULED, SCHEDULED, scheduled, rescheduled(MINUTE), WAIT),
    Transition("ack", RUNNING, SUCCEEDED, running, settled(ToSucceeded()), STOP_AND_END),
    Transition("ack", RUNNING, SUCCEEDED, running, settled(ToSucceeded(b"1", "raw")), STOP_AND_END),
    Transition("ack", RUNNING, None, running, settled(ToSucceeded(), keep=False), STOP_AND_END),
    Transition("nack", RUNNING, PENDING, running, settled(ToRetry(NOW, FAILED)), STOP_AND_WAIT),
    Transition("nack", RUNNING, SCHEDULED, running, settled(ToRetry(HOUR, FAILED)), STOP_AND_WAIT),
    Transition("nack", RUNNING, DEAD, running, settled(ToDead(FAILED)), STOP_AND_END),
    Transition("dead_letter", RUNNING, DEAD, running, settled(ToDead(FAILED)), STOP_AND_END),
    Transition("snooze", RUNNING, PENDING, running, settled(ToSnoozed(NOW)), STOP_AND_WAIT),
    Transition("snooze", RUNNING, SCHEDULED, running, settled(ToSnoozed(HOUR)), STOP_AND_WAIT),
    Transition("release", RUNNING, PENDING, running, settled(ToReleased()), STOP_AND_WAIT),
    Transition("release", RUNNING, PENDING, running, settled(ToReleased(started=True)), STOP_AND_WAIT),
    Transition("cancel_claim", RUNNING, CANCELLED, running, settled(ToCancelled("no")), STOP_AND_END),
    Transition("cancel", PENDING, CANCELLED, pending, cancel, (ENDS,)),
    Transition("cancel", SCHEDULED, CANCELLED, scheduled, cancel, (ENDS,)),
    Transition("rescue", RUNNING, PENDING, expired(3), rescue, STOP_AND_WAIT),
    Transition("rescue", RUNNING, DEAD, expired(1), rescue, STOP_AND_END),
    Transition("rescue", RUNNING, DEAD, running, rescue_to_dead, STOP_AND_END),
    Transition("retry", DEAD, PENDING, ended(ToDead(FAILED)), retry, WAIT),
    Transition("retry", CANCELLED, PENDING, ended(ToCancelled("no")), retry, WAIT),
    # what follows changes no state, or takes a job away that is no end
    Transition("cancel of a running job", RUNNING, RUNNING, running, cancel, ()),
    Transition("renewal", RUNNING, RUNNING, running, Scene.renew, ()),
    Transition("note", RUNNING, RUNNING, running, Scene.note, ()),
    Transition("stale settlement", PENDING, PENDING, lost, stale, ()),
    Transition("delete", DEAD, None, ended(ToDead(FAILED)), delete, ()),
    Transition("prune", DEAD, None, ended(ToDead(FAILED)), prune, ()),
    Transition("let go", PENDING, None, pending, let_go, ()),
    Transition("pause", PENDING, PENDING, pending, pause, ()),
)
