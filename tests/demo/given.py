"""A small run as it should go, to be spoilt by the tests.

`a` is settled at once, `m` fails once. The first server is killed with `b`, and the second one is paused with `c`; the
third does both again, and the second comes too late. `p` is the poison, which takes three servers along. `d` is made by
the schedule for its tick at 1010, and enqueues `f`.
"""

from collections.abc import Collection, Sequence

from windlass.demo.checker import Plan, Report, check
from windlass.demo.difference import Kind
from windlass.demo.ledger import Event, What
from windlass.demo.second_reader import Contents, Ended, Row

TICK = 1010.0


def run_of(worker: str, job: str, delivery: int = 1) -> list[Event]:
    """A job as it goes when all is well."""
    steps = (What.STARTED, What.EFFECT, What.RETURNED, What.ACCEPTED)
    return [Event(step, worker, job, delivery) for step in steps]


def cut_short(worker: str, job: str, delivery: int = 1) -> list[Event]:
    return run_of(worker, job, delivery)[:1]


POISONED = [
    event
    for number, worker in enumerate(("w4", "w5", "w6"), start=1)
    for event in [*cut_short(worker, "p", number), Event(What.POISONED, worker, "p", number, at=1016.0)]
]
TOO_LATE = Event(What.RETURNED, "w2", "c", 1, at=1017.5)
EVENTS = [
    *(Event(What.UP, worker, at=1000.0) for worker in ("w1", "w2", "w3", "w4", "w5", "w6")),
    *run_of("w1", "a"),
    *cut_short("w1", "m"),
    Event(What.RAISED, "w1", "m", 1),
    *run_of("w1", "m", 2),
    *cut_short("w1", "b"),
    Event(What.KILLED, "w1", at=1014.0),
    *cut_short("w2", "c"),
    Event(What.PAUSED, "w2", at=1014.0),
    *run_of("w3", "b", 2),
    *cut_short("w3", "c", 2),
    Event(What.RESUMED, "w2", at=1017.0),
    Event(What.EFFECT, "w2", "c", 1),
    TOO_LATE,
    *run_of("w3", "c", 2)[1:],
    *run_of("w3", "d"),
    *run_of("w3", "f"),
    *POISONED,
    Event(What.STOPPED, "w3", at=1018.0),
    Event(What.STOPPED, "w2", at=1018.0),
]
JOBS = {
    "a": Row("succeeded", 1),
    "b": Row("succeeded", 2),
    "c": Row("succeeded", 2),
    "d": Row("succeeded", 1, schedule="digest", due_at=TICK),
    "f": Row("succeeded", 1, parent="d"),
    "m": Row("succeeded", 2),
    "p": Row("dead", 3),
}
ENDED = [
    Ended("m", 1, "w1", "failed", 1000.5, 1001.0),
    Ended("b", 1, "w1", "rescued", 1013.0, 1014.5),
    Ended("c", 1, "w2", "rescued", 1013.0, 1016.0),
    Ended("p", 1, "w4", "rescued", 1015.0, 1016.25),
    Ended("p", 2, "w5", "rescued", 1015.0, 1016.25),
    Ended("p", 3, "w6", "rescued", 1015.0, 1016.25),
]


def checked(
    *,
    events: Sequence[Event] = EVENTS,
    jobs: dict[str, Row] = JOBS,
    ended: Sequence[Ended] = ENDED,
    enqueued: Collection[str] = "abcmp",
    poison: Collection[str] = "p",
    stopped: bool = False,
) -> Report:
    return check(Plan(enqueued, poison, stopped), events, Contents(jobs, list(ended)))


def kinds(report: Report) -> list[tuple[Kind, str]]:
    return [(difference.kind, difference.what) for difference in report.differences]


def without(*gone: Event) -> list[Event]:
    left = [event for event in EVENTS if event not in gone]
    assert len(left) < len(EVENTS)
    return left
