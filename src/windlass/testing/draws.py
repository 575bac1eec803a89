"""What the state machine draws: jobs, verdicts, requests, and calls to be made together.

Names, keys and times are few, so that what is drawn meets what was drawn before.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Failure, PreparedJob
from windlass.core.requests import ClaimRequest, KvAny, KvWrite, RescueRequest
from windlass.core.retention import Keep, Retention
from windlass.core.schedule import Schedule
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict

MANY: Final = 1_000_000

queues = st.sampled_from(["a", "b"])
payloads = st.sampled_from([b"", b"one", b"two"])
seconds = st.sampled_from([0, 1, 5, 30]).map(lambda n: timedelta(seconds=n))
leases = st.sampled_from([0, 5, 30]).map(lambda n: timedelta(seconds=n))
picks = st.integers(0, 15)
keys = st.sampled_from([b"k", b"k\x00", b"\xff", b"kk"])
values = st.sampled_from([None, b"", b"v", b"w"])
pairs = st.dictionaries(keys, values, max_size=1)
workers = st.sampled_from(["w1", "w2", "w3"])
far = st.sampled_from([False, False, False, True])
"""Whether what a call brings is left as it was drawn, also where it may be of one queue alone."""

uniques = st.builds(
    Unique,
    key=st.sampled_from(["k1", "k1", "k2"]),
    scope=st.sampled_from(["queue", "queue", "kind", "global"]),
    until=st.sampled_from(["claimed", "claimed", "finished", "finished", timedelta(seconds=20)]),
    on_conflict=st.sampled_from(["keep", "raise"]),
    match_payload=st.sampled_from([False, False, True]),
) | st.builds(Unique, key=st.just("k1"), on_conflict=st.just("replace"))

# as clients write them: with neither zero characters nor halves of surrogate pairs
failures = st.builds(
    Failure,
    message=st.sampled_from(["boom", "café"]),
    type=st.sampled_from([None, "ValueError"]),
    traceback=st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
)
verdicts: st.SearchStrategy[Verdict] = st.one_of(
    # a codec is that of a result
    st.sampled_from([ToSucceeded(), ToSucceeded(b"done", "raw")]),
    st.builds(ToRetry, delay=seconds, failure=failures),
    st.builds(ToDead, failure=failures),
    st.builds(ToSnoozed, delay=seconds),
    st.builds(ToReleased, started=st.booleans()),
    st.builds(ToCancelled, reason=st.just("not wanted")),
)

keeps = st.sampled_from([None, None, timedelta(seconds=10), timedelta(0)])
retentions = st.builds(
    Retention,
    default=st.builds(Keep, succeeded=keeps, dead=keeps, cancelled=keeps),
    queues=st.dictionaries(queues, st.builds(Keep, dead=keeps), max_size=1),
    most=st.sampled_from([None, None, None, 1]),
)


@st.composite
def prepared_jobs(draw: st.DrawFn) -> PreparedJob:
    """Draw a job; the machine gives it its id."""
    queue, kind = draw(queues), draw(st.sampled_from([None, None, "x", "y"]))
    tenant, headers = draw(st.sampled_from([(None, NO_HEADERS), (None, NO_HEADERS), ("t", {"trace": "ü"})]))
    payload, unique = draw(payloads), draw(st.none() | uniques)
    return PreparedJob(
        id=JobId(""),
        queue=queue,
        kind=kind,
        payload=payload,
        codec="raw",
        headers=headers,
        tenant=tenant,
        priority=draw(st.sampled_from([1000, 1000, 100])),
        max_attempts=draw(st.sampled_from([3, 2, 1])),
        run_at=None,
        delay=draw(st.sampled_from([None, None, None, timedelta(0), timedelta(seconds=5)])),
        unique=None if unique is None else hold(unique, queue=queue, kind=kind, tenant=tenant, payload=payload),
        kv=draw(pairs),
    )


requests = st.builds(
    ClaimRequest,
    queues=st.sampled_from([["a", "b"], ["b", "a"], ["a"], ["b"], ["a", "b", "a"], []]),
    limit=st.sampled_from([1, 2, 3, 5, 0]),
    lease=leases,
    kinds=st.sampled_from([None, None, None, None, ["x"], ["y", "x"], [None, "x"]]),
    worker=workers,
    by_priority=st.booleans(),
)


class UsedId(NamedTuple):
    """An id that was used before, for a job of the same queue, kind and tenant (`repeats`) or as it was drawn."""

    pick: int
    repeats: bool


used_ids = st.none() | st.builds(UsedId, picks, st.booleans())


class Ending(NamedTuple):
    """How one of the claims, of any age, is to be settled."""

    pick: int
    verdict: Verdict
    keep: bool
    then: Sequence[PreparedJob]
    kv: Mapping[bytes, bytes | None]
    far: bool
    used: UsedId | None
    """The id of the last job of `then`, if it is not a new one."""


endings = st.builds(
    Ending,
    picks,
    verdicts,
    st.sampled_from([True, True, False]),
    st.lists(prepared_jobs(), max_size=1),
    pairs,
    far,
    used_ids,
)


rescues = st.builds(
    RescueRequest,
    queues=st.sampled_from([None, None, None, ["a"], ["a", "b"], []]),
    workers=st.sampled_from([None, None, None, ["w1"], ["w2", "w3"]]),
    force=st.booleans(),
    to=st.sampled_from(["retry", "retry", "retry", "dead"]),
    limit=st.just(MANY),
)
locks = st.sampled_from(["l1", "l2"])
kv_writes = st.builds(KvWrite, keys, values, st.just(KvAny.ANY) | values)


schedule_ids = st.sampled_from(["s1", "s2"])
schedules = st.builds(
    Schedule,
    id=schedule_ids,
    rule=st.sampled_from(["*/5 * * * *", "every 5s"]),
    queue=queues,
    kind=st.sampled_from([None, "x"]),
    payload=payloads,
    codec=st.just("raw"),
    headers=st.sampled_from([NO_HEADERS, {"trace": "ü"}]),
    priority=st.just(1000),
    max_attempts=st.just(3),
    overlap=st.sampled_from(["skip", "skip", "allow"]),
    declared=st.booleans(),
    paused=st.sampled_from([False, False, False, True]),
)
next_runs = st.sampled_from([0, 0, -5, 5, None])
"""Seconds from now to the next run of a schedule."""


class Put(NamedTuple):
    """A schedule to be written: over one that was read before, if that is told, or as a new one."""

    schedule: Schedule
    next_run: int | None
    pick: int | None


class Remove(NamedTuple):
    """A schedule to be removed."""

    schedule_id: str


class Fire(NamedTuple):
    """A schedule to be fired, as it was read at any time; `now` when somebody asks for a run."""

    pick: int
    jobs: Sequence[PreparedJob]
    next_run: int | None
    now: bool
    far: bool


puts = st.builds(Put, schedules, next_runs, st.none() | picks)
removals = st.builds(Remove, schedule_ids)
fires = st.builds(
    Fire,
    picks,
    st.lists(prepared_jobs(), min_size=1, max_size=2) | st.just([]),
    next_runs,
    st.sampled_from([False, False, True]),
    far,
)


class Enqueue(NamedTuple):
    """Enqueue beside other calls."""

    jobs: Sequence[PreparedJob]
    far: bool


class Settle(NamedTuple):
    """Settle beside other calls."""

    endings: Sequence[Ending]


class Cancel(NamedTuple):
    """Cancel beside other calls."""

    chosen: Sequence[int]
    retention: Retention


class Retry(NamedTuple):
    """Retry beside other calls."""

    chosen: Sequence[int]


class Pause(NamedTuple):
    """Pause or resume beside other calls."""

    queue: str
    paused: bool


class Rescue(NamedTuple):
    """Rescue beside other calls."""

    request: RescueRequest
    retention: Retention


Rival: TypeAlias = Enqueue | ClaimRequest | Settle | Cancel | Retry | Pause | Rescue | KvWrite | Put | Remove | Fire
some = st.lists(picks, min_size=1, max_size=2)
rivals: st.SearchStrategy[Rival] = st.one_of(
    st.builds(Enqueue, st.lists(prepared_jobs(), min_size=1, max_size=2), far),
    requests,
    st.builds(Settle, st.lists(endings, min_size=1, max_size=2)),
    st.builds(Cancel, some, retentions),
    st.builds(Retry, some),
    st.builds(Pause, queues, st.sampled_from([False, False, True])),
    st.builds(Rescue, rescues, retentions),
    kv_writes,
    puts,
    removals,
    fires,
    fires,
)
